"""Table: rows and named columns, whatever they were read from, with the place of each row for messages.

    table = open_table("reviews.csv")            any file, folder or address (regard/data/tabular.py)
    table = table_of({"text": [...], ...})       columns, rows, a frame or an Arrow table in memory
    table.cells["text"]                          a column: cells as text, None where there is no value
    table.find("data.text", "2")                 the name of a column that somebody named or numbered
    table.numbers("price"), table.times("date")  cells as numbers and as times, a bad one named by its place

A column is read when it is asked for, and kept in a file without a name where it is long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np

from regard.data.packed import AT_ONCE, Chosen, Column, Places
from regard.data.source import shown
from regard.errors import DataError, UsageError, nearest
from regard.storage.arrays import joined

MISSING = ("", "nan", "na", "n/a", "null", "none")


class Lazy(Column[Any]):
    """A column that is read when it is first asked for. n: how many rows it has."""

    def __init__(self, read: Callable[[], Column[Any]], n: int) -> None:
        self.read, self.n = read, n
        self.column: Column[Any] | None = None

    def __len__(self) -> int:
        return self.n

    def value(self, row: int) -> Any:
        return self.whole.value(row)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.whole)

    def at(self, rows: np.ndarray) -> Iterator[Any]:
        return self.whole.at(rows)

    def raw(self, rows: np.ndarray) -> Iterator[Any]:
        return self.whole.raw(rows)

    def release(self) -> None:
        if self.column is not None:
            self.column.release()

    @property
    def whole(self) -> Column[Any]:
        if self.column is None:
            self.column = self.read()
        return self.column


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a table by name, and the place of every row.

    path    what it is called in messages.
    cells   by column: text, or None where there is no value.
    lines   the number of each row: that of its line in a text, else that of the row below its header.
    unit    what `lines` counts.
    named   whether the columns have names of their own; otherwise they are called 1, 2 and so on.
    form    what it was, for people, such as "CSV".
    note    what the reader had to decide, in one line.
    """

    path: str
    cells: Mapping[str, Column[Any]]
    lines: Sequence[int] | np.ndarray
    unit: str = "line"
    named: bool = True
    form: str = "table"
    note: str = field(default="", kw_only=True)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        return list(self.cells)

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        return f"{shown(self.path)}, {self.unit} {self.lines[row]}"

    @property
    def places(self) -> Places:
        """The places of all rows."""
        return Places(self.path, self.lines, self.unit)

    def find(self, role: str, name: str) -> str:
        """The column of that name, or of that number from 1 on; `role` is the setting that asked for it."""
        if name in self.cells:
            return name
        if name.isdecimal() and 1 <= int(name) <= len(self.cells):
            return self.names[int(name) - 1]
        same = [one for one in self.cells if one.strip().lower() == name.strip().lower()]
        if len(same) == 1:
            return same[0]
        hint = nearest(name, self.names)
        told = "" if hint.startswith(";") else f"; its columns are {', '.join(self.names)}"
        raise UsageError(f"{role}={name}: {shown(self.path)} has no such column{hint}{told}")

    def head(self, n: int) -> list[list[Any]]:
        """The first rows, by column."""
        return [list(islice(column, n)) for column in self.cells.values()]

    def taken(self, rows: np.ndarray) -> Table:
        """The rows with these numbers, as a view."""
        cells = {name: Chosen(column, rows) for name, column in self.cells.items()}
        return replace(self, cells=cells, lines=np.asarray(self.lines)[rows])

    def column(self, name: str, role: str) -> str:
        """That name, or the name of the column of that number; `role` is the setting that asked for it."""
        return self.find(f"data.{role}", name)

    def numeric(self, but: Iterable[str] = ()) -> list[str]:
        """Columns whose first filled cell is a number; a later cell that is none is then a slip, to be refused."""
        others = {name: cells for name, cells in self.cells.items() if name not in but}
        filled = {name: (cell for cell in cells if not is_missing(cell)) for name, cells in others.items()}
        return [name for name, cells in filled.items() if is_number(next(cells, ""))]

    def dated(self) -> list[str]:
        """Columns whose first cell is a time."""
        return [name for name, cells in self.cells.items() if as_time((cells[0] or "").strip()) is not None]

    def times(self, column: str) -> np.ndarray:
        """The times of a column, (n,) datetime64[s]. Those with an offset from UTC are turned into UTC."""
        first = as_time((self.cells[column][0] or "").strip())
        parts = self._made([column], lambda cell, row, name: self._time(cell, row, name, first), "datetime64[s]")
        return joined((part[:, 0] for part in parts), dtype="datetime64[s]")

    def _time(self, cell: str, row: int, column: str, first: datetime | None) -> datetime:
        time = as_time(cell)
        if time is None or time.microsecond or first is None or (time.tzinfo is None) != (first.tzinfo is None):
            raise DataError(
                f"{self.where(row)}, column {column!r}: {cell!r} is no time, or not written as the others; "
                f"write 2013-01-31 23:00:00 in every row"
            )
        return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)

    def numbers(self, *columns: str) -> np.ndarray:
        """The numbers of some columns, (n, C) float64, NaN where a cell is empty; mapped where they are many."""
        return joined(self._made(columns, self._number, "float64"), (len(columns),))

    def _made(self, columns: Sequence[str], make: Callable[[str, int, str], Any], dtype: str) -> Iterator[np.ndarray]:
        """What a function makes of cells, of some rows at a time, (R, C)."""
        cells = [iter(self.cells[name]) for name in columns]
        for first in range(0, len(self), AT_ONCE):
            part = np.empty((min(AT_ONCE, len(self) - first), len(columns)), dtype)
            for place, name in enumerate(columns):
                some = enumerate(islice(cells[place], len(part)), first)
                made = (make((cell or "").strip(), row, name) for row, cell in some)
                part[:, place] = np.fromiter(made, dtype, len(part))
                self.cells[name].release()
            yield part

    def _number(self, cell: str, row: int, column: str) -> float:
        if is_missing(cell):
            return math.nan
        if not is_number(cell):
            raise DataError(f"{self.where(row)}, column {column!r}: {cell!r} is no number; mend it or leave it out")
        return float(cell)


def is_missing(cell: str | None) -> bool:
    """Whether a cell says that there is no value."""
    return cell is None or cell.strip().lower() in MISSING


def is_number(cell: str) -> bool:
    """Whether a cell is a finite number. Python would read 1_000 as well; in a file that is a slip."""
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


def as_time(cell: str) -> datetime | None:
    """The time that a cell is: ISO 8601, also with slashes, or 31.12.2013 23:00. Month and day are never guessed.

    >>> as_time("2013/12/31 23:00") == as_time("31.12.2013 23:00") == datetime(2013, 12, 31, 23)
    True
    """
    for form in ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S") if cell[2:3] == "." else ():
        try:
            return datetime.strptime(cell, form)
        except ValueError:
            continue
    try:
        # Without a separator 20131231 is a date, and just as well a number.
        return None if cell.isdigit() else datetime.fromisoformat(cell.replace("/", "-"))
    except ValueError:
        return None
