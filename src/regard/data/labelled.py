"""Labelled texts from TSV, CSV and JSONL files, with a header or without.

Which columns hold texts and labels: as told, by their names, else by what is in them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.example import Examples, Labelled
from regard.data.packed import Coded, Places
from regard.data.record import Records, read_records
from regard.data.source import shown
from regard.errors import DataError, UsageError, nearest

LABEL_NAMES = ("label", "class", "sentiment", "category")
TEXT_NAMES = ("text", "sentence", "review", "question")


def read_labelled(path: str, *, text: str | None = None, label: str | None = None) -> Examples[Labelled]:
    """The texts of a file with their labels, all labels as strings.

    text, label  the name of a column, or its number from 1. Unless told: columns named text (sentence, review,
                 question) and label (class, sentiment, category); else the longest column and the one with few
                 different values (see `choose`).
    """
    records = read_records(path)
    columns = choose(records, text, label)
    first = int(columns.header)
    labels, empty = Coded(), 0
    for index, (words, kind) in enumerate(
        zip(records.columns[columns.text], records.columns[columns.label], strict=True)
    ):
        label_here = (kind or "").strip()
        if index >= first and (not label_here or words is None):
            role, missing = ("label", columns.label) if not label_here else ("text", columns.text)
            raise DataError(
                f"{records.where(index)}: no {role} in column {columns.names[missing]!r}; mend or remove it"
            )
        labels.append(label_here)
        empty += index >= first and not words.strip()
    n_rows = len(records) - first
    notes = [columns.note, f"{empty:,} of {n_rows:,} texts are empty" if empty else ""]
    return Examples(
        Labelled,
        {"text": records.columns[columns.text], "label": labels, "where": Places(path, records.lines)},
        rows=np.arange(first, len(records)),
        note=f"{shown(path)}: {'; '.join(filter(None, notes))}" if any(notes) else "",
        settings={"text": columns.names[columns.text], "label": columns.names[columns.label]},
    )


@dataclass(frozen=True)
class Columns:
    """The columns of a file and what was chosen of them.

    names   of all columns: those of the header, else their numbers from 1.
    header  whether the first row is one.
    note    what had to be decided, in one line.
    """

    names: tuple[str, ...]
    header: bool
    text: int
    label: int
    note: str = ""


def choose(records: Records, text: str | None = None, label: str | None = None) -> Columns:
    """The columns of texts and labels; what cannot be told is refused with the names and the setting that tells it."""
    header = _header(records, text, label)
    width = len(records.columns)
    numbers = tuple(str(number) for number in range(1, width + 1))
    first = tuple(map(str, records.row(0)))
    names = records.names or (first if header else numbers)
    if len(records) == int(header):
        raise DataError(f"{shown(records.path)} holds a header and nothing else: give rows below it")
    if width < 2:
        raise DataError(f"{shown(records.path)} has one column, {names[0]!r}: give a text and its label on each line")
    table = _Table(records.path, names, [column[int(header) :] for column in records.columns])
    text_at, label_at = _told(table, "text", text), _told(table, "label", label)
    if text_at is None:
        text_at = _named(table, "text", TEXT_NAMES, label_at)
    if label_at is None:
        label_at = _named(table, "label", LABEL_NAMES, text_at)
    if text_at is None:
        text_at = _longest(table, label_at)
    note = ""
    if label_at is None:
        label_at, note = _fewest(table, text_at)
    if text_at == label_at:
        raise UsageError(f"data.text and data.label are both column {names[text_at]!r} of {shown(records.path)}")
    if not header and records.names is None and _unlike(table.columns[text_at], table.columns[label_at]):
        note = "; ".join(filter(None, [note, "line 1 is taken as a header"]))
        return Columns(first, True, text_at, label_at, note)
    return Columns(names, header, text_at, label_at, note)


def looks_labelled(column: Sequence[str | None]) -> bool:
    """Whether there are few different values for the number of rows, and more than one."""
    most = max(2, min(len(column) // 2, int(4 * math.sqrt(len(column)))))
    return 2 <= n_different(column, most + 1) <= most


def n_different(column: Iterable[object], enough: int) -> int:
    """How many different values there are; `enough` of them are not counted further."""
    seen: set[object] = set()
    for value in column:
        seen.add(value)
        if len(seen) >= enough:
            break
    return len(seen)


def mean_length(column: Sequence[str | None]) -> float:
    """Characters per cell."""
    return sum(len(cell or "") for cell in column) / len(column)


@dataclass(frozen=True)
class _Table:
    path: str
    names: tuple[str, ...]
    columns: list[Sequence[str | None]]

    def refusal(self, what: str, role: str) -> UsageError:
        names = ", ".join(self.names)
        return UsageError(f"{shown(self.path)}: {what}; its columns are {names}: say which with data.{role}=NAME")


def _header(records: Records, text: str | None, label: str | None) -> bool:
    """Whether the first row names columns for certain. A text name alone may as well be a label ("question")."""
    if records.names is not None:
        return False
    cells = [str(cell).strip().lower() for cell in records.row(0)]
    told = [name.lower() for name in (text, label) if name is not None and not name.isdecimal()]
    return any(name in cells for name in (*LABEL_NAMES, *told))


def _told(table: _Table, role: str, name: str | None) -> int | None:
    if name is None:
        return None
    if name in table.names:
        return table.names.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(table.names):
        return int(name) - 1
    raise UsageError(f"data.{role}={name}: {shown(table.path)} has no such column{nearest(name, table.names)}")


def _named(table: _Table, role: str, known: tuple[str, ...], taken: int | None) -> int | None:
    """The column with a known name. The first of the known names is beyond doubt."""
    lowered = [name.strip().lower() for name in table.names]
    found = [index for index, name in enumerate(lowered) if name in known and index != taken]
    best = [index for index in found if lowered[index] == known[0]]
    if len(best or found) > 1:
        raise table.refusal(f"several columns may be the {role}", role)
    return (best or found or [None])[0]


def _longest(table: _Table, taken: int | None) -> int:
    """The column with the longest cells, when no other comes near."""
    lengths = sorted(
        ((mean_length(column), index) for index, column in enumerate(table.columns) if index != taken), reverse=True
    )
    if len(lengths) > 1 and lengths[1][0] > lengths[0][0] / 2 and not looks_labelled(table.columns[lengths[1][1]]):
        raise table.refusal("several columns may be the text", "text")
    return lengths[0][1]


def _fewest(table: _Table, taken: int) -> tuple[int, str]:
    """The column with few different values. Of several, the coarsest, if it says nothing that the others do not."""
    free = [index for index in range(len(table.columns)) if index != taken]
    found = sorted((len(set(table.columns[i])), i) for i in free if looks_labelled(table.columns[i]))
    if not found:
        single = [index for index in free if n_different(table.columns[index], 2) == 1]
        if len(single) == 1:
            return single[0], ""
        raise table.refusal("no column looks like labels, with few different values", "label")
    n_classes, best = found[0]
    for _, other in found[1:]:
        if len(set(zip(table.columns[best], table.columns[other], strict=True))) != len(set(table.columns[other])):
            raise table.refusal("several columns may be the label", "label")
    note = ""
    if len(found) > 1:
        others = ", ".join(f"{table.names[i]} ({n})" for n, i in found[1:])
        note = f"labels are column {table.names[best]} with {n_classes} classes; finer ones: {others}"
    return best, note


def _unlike(texts: Sequence[str | None], labels: Sequence[str | None]) -> bool:
    """Whether the first row names columns by its look: one word as text, and a label that nothing else has."""
    if len(labels) < 5 or " " in (texts[0] or "").strip():
        return False
    counts = Counter(labels)
    return counts.pop(labels[0]) == 1 and min(counts.values()) > 1 and mean_length(texts[1:]) > 2 * len(texts[0] or "")
