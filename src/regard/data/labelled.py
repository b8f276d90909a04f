"""Labelled texts from any table, with a header or without.

Which columns hold texts and labels: as told, by their names, else by what is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.account import Account
from regard.data.cells import Cells
from regard.data.choices import OPEN, Choices, Missing
from regard.data.example import Examples, Labelled
from regard.data.header import looks_labelled, mean_length, n_different
from regard.data.missing import rows_with
from regard.data.packed import Coded, Column, Mapped
from regard.data.source import shown
from regard.data.table import Table
from regard.data.tabular import describe, open_table
from regard.errors import DataError, UsageError

LABEL_NAMES = ("label", "class", "sentiment", "category")
TEXT_NAMES = ("text", "sentence", "review", "question")
MANY, FEW = 20_000, 1_000  # cells by which columns are told, and rows at least


def read_labelled(
    data: str,
    *,
    text: str | None = None,
    label: str | None = None,
    missing: Missing = "refuse",
    choices: Choices = OPEN,
) -> Examples[Labelled]:
    """The texts of a table with their labels, all labels as strings.

    text, label  the name of a column, or its number from 1. Unless told: columns named text (sentence, review,
                 question) and label (class, sentiment, category); else the longest column and the one with few
                 different values (see `choose`).
    missing      what is done about rows that lack one of them.
    """
    table = open_table(data, choices, _told_names(text, label))
    columns = choose(table, text, label)
    kept = rows_with(table, {"text": columns.text}, {"label": columns.label}, missing)
    texts, labels = table.cells[columns.text], coded(table.cells[columns.label])
    account = Account(
        data=data,
        form=describe(table),
        target=columns.label,
        columns={"text": columns.text, "label": columns.label},
        ignored=[name for name in table.names if name not in (columns.text, columns.label)],
        read=len(table),
        dropped=kept.dropped,
        facts={"classes": labels.n_different(kept.rows)},
        first={"text": texts[int(kept.rows[0])] or "", "label": labels[int(kept.rows[0])]},
    )
    notes = [table.note, columns.note, kept.told]
    return Examples(
        Labelled,
        {"text": Mapped(texts, _text), "label": labels, "where": table.places},
        rows=kept.rows,
        note=f"{shown(data)}: {'; '.join(filter(None, notes))}" if any(notes) else "",
        settings={"text": columns.text, "label": columns.label},
        account=account,
    )


def coded(column: Column[str | None]) -> Coded:
    """Labels by number, without blanks around them."""
    if isinstance(column, Cells):
        short = column.short
        if len(short.rows) == len(column):
            # The cells of a column of labels are short and few: each different one is made once.
            return Coded.of([(column.value(row) or "").strip() for row in short.first.tolist()], short.group)
    return Coded((cell or "").strip() for cell in column)


def _text(cell: str | None) -> str:
    return cell or ""


def _told_names(*names: str | None) -> list[str]:
    return [name.strip().lower() for name in names if name is not None and not name.isdecimal()]


@dataclass(frozen=True)
class Columns:
    """The columns that were chosen of a table. note: what had to be decided, in one line."""

    text: str
    label: str
    note: str = ""


def choose(table: Table, text: str | None = None, label: str | None = None) -> Columns:
    """The columns of texts and labels; what cannot be told is refused with the names and the setting that tells it."""
    names = table.names
    if len(names) < 2:
        raise DataError(f"{shown(table.path)} has one column, {names[0]!r}: give a text and its label on each line")
    head = _Head(table, dict(zip(names, table.head(max(FEW, MANY // len(names))), strict=True)))
    text_in = None if text is None else table.find("data.text", text)
    label_in = None if label is None else table.find("data.label", label)
    if text_in is None:
        text_in = _named(head, "text", TEXT_NAMES, label_in)
    if label_in is None:
        label_in = _named(head, "label", LABEL_NAMES, text_in)
    if text_in is None:
        text_in = _longest(head, label_in)
    note = ""
    if label_in is None:
        label_in, note = _fewest(head, text_in)
    if text_in == label_in:
        raise UsageError(f"data.text and data.label are both column {text_in!r} of {shown(table.path)}")
    return Columns(text_in, label_in, note)


@dataclass(frozen=True)
class _Head:
    """A table and its first rows, by column."""

    table: Table
    columns: dict[str, Sequence[str | None]]

    def refusal(self, what: str, role: str) -> UsageError:
        names = ", ".join(self.columns)
        return UsageError(f"{shown(self.table.path)}: {what}; its columns are {names}: say which with data.{role}=NAME")


def _named(head: _Head, role: str, known: tuple[str, ...], taken: str | None) -> str | None:
    """The column with a known name. The first of the known names is beyond doubt."""
    lowered = {name: name.strip().lower() for name in head.columns} if head.table.named else {}
    found = [name for name, low in lowered.items() if low in known and name != taken]
    best = [name for name in found if lowered[name] == known[0]]
    if len(best or found) > 1:
        raise head.refusal(f"several columns may be the {role}", role)
    return (best or found or [None])[0]


def _longest(head: _Head, taken: str | None) -> str:
    """The column with the longest cells, when no other comes near."""
    columns = {name: column for name, column in head.columns.items() if name != taken}
    lengths = sorted(((mean_length(column), name) for name, column in columns.items()), reverse=True)
    if len(lengths) > 1 and lengths[1][0] > lengths[0][0] / 2 and not looks_labelled(columns[lengths[1][1]]):
        raise head.refusal("several columns may be the text", "text")
    return lengths[0][1]


def _fewest(head: _Head, taken: str) -> tuple[str, str]:
    """The column with few different values. Of several, the coarsest, if it says nothing that the others do not."""
    free = {name: column for name, column in head.columns.items() if name != taken}
    found = sorted((len(set(column)), name) for name, column in free.items() if looks_labelled(column))
    if not found:
        single = [name for name, column in free.items() if n_different(column, 2) == 1]
        if len(single) == 1:
            return single[0], ""
        raise head.refusal("no column looks like labels, with few different values", "label")
    n_classes, best = found[0]
    for _, other in found[1:]:
        if len(set(zip(free[best], free[other], strict=True))) != len(set(free[other])):
            raise head.refusal("several columns may be the label", "label")
    note = ""
    if len(found) > 1:
        others = ", ".join(f"{name} ({n})" for n, name in found[1:])
        note = f"labels are column {best} with {n_classes} classes; finer ones: {others}"
    return best, note
