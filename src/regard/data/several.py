"""Texts with several labels each, or none, from any table: a list in a cell, or labels with a mark between.

["drama", "war"]        as JSON, and as lists of Parquet and Arrow are read
drama|war               or with ; or , between: data.separator, else the first of these that occurs
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from regard.data.account import Account
from regard.data.choices import OPEN, Choices, Missing
from regard.data.example import Examples, Several
from regard.data.header import mean_length, n_different
from regard.data.labelled import TEXT_NAMES
from regard.data.missing import rows_with
from regard.data.packed import Coded, Mapped, Nested
from regard.data.source import shown
from regard.data.table import Table
from regard.data.tabular import describe, open_table
from regard.errors import DataError, RegardError, UsageError

LABELS_NAMES = ("labels", "topics", "genres", "categories", "keywords", "themes", "emotions")
SEPARATORS = "|;,"
HEAD = 1_000  # rows by which columns are told
FEW = 0.5  # different labels for each row at most, where a table is clearly one of them


def read_several(
    data: str,
    *,
    text: str | None = None,
    labels: str | None = None,
    separator: str | None = None,
    missing: Missing = "refuse",
    choices: Choices = OPEN,
) -> Examples[Several]:
    """The texts of a table with the labels of each; a cell that is empty has none.

    text, labels  the name of a column, or its number from 1.
    separator     between labels; told from the first rows without.
    missing       what is done about rows that lack a text.
    """
    known = [name.strip().lower() for name in (text, labels) if name is not None and not name.isdecimal()]
    table = open_table(data, choices, [*known, *LABELS_NAMES])
    text_in, labels_in = choose(table, text, labels)
    kept = rows_with(table, {"text": text_in}, {}, missing)
    mark = separator or separator_of(table.cells[labels_in][:HEAD])
    names, stops = list[str](), array("q")
    for row, cell in enumerate(table.cells[labels_in]):
        names += labels_of(cell, mark, f"{table.where(row)}, column {labels_in!r}")
        stops.append(len(names))
    sets = Nested(Coded(names), stops)
    texts, first = table.cells[text_in], int(kept.rows[0])
    account = Account(
        data=data,
        form=describe(table),
        target=labels_in,
        columns={"text": text_in, "labels": labels_in},
        ignored=[name for name in table.names if name not in (text_in, labels_in)],
        read=len(table),
        dropped=kept.dropped,
        first={"text": texts[first] or "", "labels": ", ".join(sets[first])},
    )
    notes = [table.note, kept.told]
    return Examples(
        Several,
        {"text": Mapped(texts, _text), "labels": sets, "where": table.places},
        rows=kept.rows,
        note=f"{shown(data)}: {'; '.join(filter(None, notes))}" if any(notes) else "",
        settings={"text": text_in, "labels": labels_in, "separator": mark},
        account=account,
    )


def choose(table: Table, text: str | None = None, labels: str | None = None) -> tuple[str, str]:
    """The columns of texts and of labels; what cannot be told is refused with the setting that tells it."""
    head = {name: _filled(column) for name, column in zip(table.names, table.head(HEAD), strict=True)}
    lowered = {name: name.strip().lower() for name in head} if table.named else {}
    text_in = None if text is None else table.find("data.text", text)
    labels_in = None if labels is None else table.find("data.labels", labels)
    if labels_in is None:
        named = [name for name in head if name != text_in and lowered.get(name) in LABELS_NAMES]
        listed = [name for name in head if name != text_in and _is_listed(head[name])]
        labels_in = _only(table, named or listed, "labels", "several columns may be the labels")
    if text_in is None:
        found = [name for name in head if name != labels_in and head[name] and not _is_listed(head[name])]
        named = [name for name in found if lowered.get(name) in TEXT_NAMES]
        longest = sorted(found, key=lambda name: -mean_length(head[name]))
        far = len(longest) > 1 and 2 * mean_length(head[longest[1]]) <= mean_length(head[longest[0]])
        text_in = _only(table, named or (longest[:1] if far else found), "text", "several columns may be the text")
    if text_in == labels_in:
        raise UsageError(f"data.text and data.labels are both column {text_in!r} of {shown(table.path)}")
    return text_in, labels_in


def is_of_several(table: Table) -> bool:
    """Whether a table clearly has texts with several labels: lists, or marks between, of few different labels."""
    try:
        text_in, labels_in = choose(table)
        head = dict(zip(table.names, table.head(HEAD), strict=True))
        cells, mark = head[labels_in], separator_of(head[labels_in])
        sets = [labels_of(cell, mark, "") for cell in cells]
    except RegardError:
        return False
    is_text = any(" " in cell for cell in _filled(head[text_in]))
    different = n_different((name for one in sets for name in one), len(cells) + 1)
    return is_text and any(len(one) > 1 for one in sets) and 2 <= different <= max(2.0, FEW * len(cells))


def separator_of(cells: Iterable[Any]) -> str:
    """The mark between labels: the first of the usual ones that occurs; the last where none does."""
    found = {
        mark for cell in cells if isinstance(cell, str) and not _is_list(cell) for mark in SEPARATORS if mark in cell
    }
    return next((mark for mark in SEPARATORS if mark in found), SEPARATORS[-1])


def labels_of(cell: str | None, mark: str, where: str) -> list[str]:
    """The labels of a cell, each once, in the order in which they stand.

    >>> labels_of('["war", "drama", "war"]', "|", ""), labels_of(" war | drama|", "|", ""), labels_of("", "|", "")
    (['war', 'drama'], ['war', 'drama'], [])
    """
    plain = (cell or "").strip()
    found: Any = plain.split(mark)
    if _is_list(plain):
        try:
            found = json.loads(plain)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, list) or not all(isinstance(one, str | int) for one in found):
            raise DataError(f"{where}: expected a list of labels, found {plain[:40]!r}; mend it or remove the row")
    return list(dict.fromkeys(name for one in found if (name := str(one).strip())))


def _is_list(cell: str) -> bool:
    return cell.strip().startswith("[")


def _is_listed(cells: Sequence[str]) -> bool:
    return bool(cells) and all(map(_is_list, cells))


def _only(table: Table, found: Sequence[str], role: str, many: str) -> str:
    if len(found) == 1:
        return found[0]
    told = many if found else f"no column is clearly the {role}"
    names = ", ".join(table.names)
    raise UsageError(f"{shown(table.path)}: {told}; its columns are {names}: say which with data.{role}=NAME")


def _filled(column: Sequence[Any]) -> list[str]:
    return [cell.strip() for cell in column if isinstance(cell, str) and cell.strip()]


def _text(cell: str | None) -> str:
    return cell or ""
