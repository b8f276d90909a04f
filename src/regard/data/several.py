"""Texts with several labels each, or none, from any table: a list in a cell, or labels with a mark between.

["drama", "war"]        as JSON, and as lists of Parquet and Arrow are read
drama|war               or with ; or , between: data.separator, else the first of these that occurs
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from regard.data.choices import OPEN, Choices, Missing
from regard.data.example import Examples, Several
from regard.data.header import n_different
from regard.data.missing import rows_with
from regard.data.packed import Coded, Nested
from regard.data.table import Table
from regard.data.tabular import open_table
from regard.data.told_text import (
    HEAD,
    Told,
    choose_text,
    examples_of,
    head_of,
    named_among,
    only,
    refuse_same,
    told_names,
)
from regard.errors import DataError, RegardError

LABELS_NAMES = ("labels", "topics", "genres", "categories", "keywords", "themes", "emotions")
SEPARATORS = "|;,"
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
    table = open_table(data, choices, [*told_names(text, labels), *LABELS_NAMES])
    text_in, labels_in = choose(table, text, labels)
    kept = rows_with(table, {"text": text_in}, {}, missing)
    mark = separator or separator_of(table.cells[labels_in][:HEAD])
    names, stops = list[str](), array("q")
    for row, cell in enumerate(table.cells[labels_in]):
        names += labels_of(cell, mark, f"{table.where(row)}, column {labels_in!r}")
        stops.append(len(names))
    sets = Nested(Coded(names), stops)
    first = ", ".join(sets[int(kept.rows[0])])
    found = examples_of(Several, data, table, kept, text_in, Told("labels", labels_in, sets, first))
    found.settings["separator"] = mark
    return found


def choose(table: Table, text: str | None = None, labels: str | None = None) -> tuple[str, str]:
    """The columns of texts and of labels; what cannot be told is refused with the setting that tells it."""
    head = head_of(table, ("",))
    text_in = None if text is None else table.find("data.text", text)
    labels_in = None if labels is None else table.find("data.labels", labels)
    if labels_in is None:
        free = [name for name in head if name != text_in]
        chosen = named_among(table, free, LABELS_NAMES) or [name for name in free if _is_listed(head[name])]
        many, none = "several columns may be the labels", "no column is clearly the labels"
        labels_in = only(table, chosen, "labels", many, none)
    if text_in is None:
        text_in = choose_text(table, head, labels_in, _is_listed)
    refuse_same(table, text_in, labels_in, "labels")
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
    is_text = any(" " in (cell or "") for cell in head[text_in])
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
