"""Missing values: what a cell without a value is, and what is done about the rows that have one.

    refuse   the first such row is named, with how many there are and the ways out.
    drop     such rows are left out and counted.
    empty    a text that is missing is an empty text; a label that is missing is refused all the same.
    keep     a label such as NA is one like any other; what is empty is refused.

A text is missing where its cell is empty or there is none; "nan" is then a text like any other. A label is missing too
where its cell holds what programs write for a value that there is not: nan, NA, null and so on. Otherwise there would
be a class of that name, which nobody meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from regard.data.cells import SHORT, Cells
from regard.data.choices import Missing
from regard.data.packed import Column
from regard.data.table import Table
from regard.errors import DataError

# As pandas reads them; a class may well be called none or na, in small letters.
NO_VALUE = frozenset(
    ("", "nan", "NaN", "-nan", "-NaN", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "None", "NaT")
)

BLANK = " \t\r\n"
AT_ONCE = 1 << 19  # rows that are looked at together


@dataclass(frozen=True)
class Kept:
    """The rows that are read of a table.

    rows     their numbers.
    dropped  how many were left out for what they lack. empty: how many lack a text and are kept.
    """

    rows: np.ndarray
    dropped: Mapping[str, int]
    empty: Mapping[str, int] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """What was dropped or is empty, for people; "" where nothing is."""
        dropped = ", ".join(f"{count:,} without a {role}" for role, count in self.dropped.items() if count)
        empty = [f"{count:,} of {len(self.rows):,} rows have an empty {role}" for role, count in self.empty.items()]
        return "; ".join(filter(None, [f"dropped {dropped}" if dropped else "", *empty]))


def rows_with(table: Table, texts: Mapping[str, str], labels: Mapping[str, str], missing: Missing) -> Kept:
    """The rows whose cells have values. texts, labels: columns by what they are for, such as text or label."""
    lacks = np.zeros(len(table), bool)
    dropped, empty = dict[str, int](), dict[str, int]()
    for role, name in [*texts.items(), *labels.items()]:
        is_plain = role in texts or missing == "keep"
        found = no_text(table.cells[name]) if is_plain else no_label(table.cells[name])
        if not found.any():
            continue
        if missing == "empty" and role in texts:
            empty[role] = int(found.sum())
            continue
        if missing != "drop":
            raise _refusal(table, role, name, found, role in texts)
        dropped[role] = int((found & ~lacks).sum())
        lacks |= found
    if lacks.all():
        raise DataError(f"{table.path}: every row lacks {' or '.join(dropped)}; check the columns")
    return Kept(np.flatnonzero(~lacks), dropped, empty)


def no_text(column: Column[Any]) -> np.ndarray:
    """Where a column has no text, (n,) bool. Of a long one some rows at a time: it may be more than memory holds."""
    if not isinstance(column, Cells) or len(column) <= AT_ONCE:
        return _where(column, _is_blank)
    found = np.zeros(len(column), bool)
    for first in range(0, len(column), AT_ONCE):
        part = replace(column, bounds=column.bounds[first : first + AT_ONCE])
        found[first : first + AT_ONCE] = _where(part, _is_blank)
        column.release()
    return found


def _is_blank(cell: str | None) -> bool:
    return not cell or not cell.strip(BLANK)


def no_label(column: Column[Any]) -> np.ndarray:
    """Where a column has no label, (n,) bool."""
    return _where(column, lambda cell: cell is None or cell.strip(BLANK) in NO_VALUE)


def _where(column: Column[Any], lacks: Callable[[str | None], bool]) -> np.ndarray:
    if not isinstance(column, Cells):
        return np.fromiter(map(lacks, column), bool, len(column))
    found = np.zeros(len(column), bool)
    short = column.short
    # Of the short ones, of which there may be many, each different one is looked at once.
    lacking = np.array([lacks(column.value(row)) for row in short.rows[short.first].tolist()], bool)
    if lacking.any():
        found[short.rows] = lacking[short.group]
    for row in np.flatnonzero(column.begins_blank & (column.sizes > SHORT)).tolist():
        found[row] = lacks(column.value(row))
    return found


def _refusal(table: Table, role: str, name: str, found: np.ndarray, is_text: bool) -> DataError:
    row = int(np.flatnonzero(found)[0])
    cell = (table.cells[name][row] or "").strip()
    value = f" ({cell!r} is no value)" if cell else ""
    others = int(found.sum())
    so_many = f"; {others:,} of {len(table):,} rows lack it" if others > 1 else ""
    more = f", data.missing=keep takes {cell!r} as a {role} like any other" if cell else ""
    empty = ", data.missing=empty takes it as an empty text" if is_text else more
    return DataError(
        f"{table.where(row)}: no {role} in column {name!r}{value}{so_many}; mend it, or data.missing=drop leaves such "
        f"rows out{empty}"
    )
