"""Tables: the columns of a CSV file with a header, as times or as numbers, every bad cell named by line and column."""

from __future__ import annotations

import csv
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import numpy as np

from regard.data.packed import Packed
from regard.data.record import refuse_columns
from regard.data.source import read_lines
from regard.errors import DataError, UsageError, nearest

MISSING = ("", "nan", "na", "n/a", "null", "none")
DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True)
class Table:
    """The cells of a file as text, by column, without blanks around them, and the line of every row."""

    path: str
    cells: dict[str, Packed]
    lines: array[int]

    def column(self, name: str, role: str) -> str:
        """That name, if a column is called so; `role` is the setting that asked for it."""
        if name not in self.cells:
            raise UsageError(f"{role} = {name!r}: {self.path} has no such column{nearest(name, self.cells)}")
        return name

    def numeric(self, but: Iterable[str] = ()) -> list[str]:
        """Columns whose first filled cell is a number; a later cell that is none is then a slip, to be refused."""
        filled = {name: (cell for cell in cells if cell and not is_missing(cell)) for name, cells in self.cells.items()}
        first = {name: next(cells, "") for name, cells in filled.items()}
        return [name for name, cell in first.items() if name not in but and is_number(cell)]

    def dated(self) -> list[str]:
        """Columns whose first cell is a time."""
        return [name for name, cells in self.cells.items() if as_time(cells[0]) is not None]

    def times(self, column: str) -> np.ndarray:
        """The times of a column, (n,) datetime64[s]. Those with an offset from UTC are turned into UTC."""
        first = as_time(self.cells[column][0])
        return np.fromiter(
            (self._time(cell, line, column, first) for cell, line in zip(self.cells[column], self.lines, strict=True)),
            "datetime64[s]",
            len(self.lines),
        )

    def _time(self, cell: str, line: int, column: str, first: datetime | None) -> datetime:
        time = as_time(cell)
        if time is None or time.microsecond or first is None or (time.tzinfo is None) != (first.tzinfo is None):
            raise DataError(
                f"{self.path}, line {line}, column {column!r}: {cell!r} is no time, or not written as the others; "
                f"write 2013-01-31 23:00:00 in every row"
            )
        return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)

    def numbers(self, column: str) -> np.ndarray:
        """The numbers of a column, (n,) float64, NaN where a cell is empty."""
        return np.fromiter(
            (self._number(cell, line, column) for cell, line in zip(self.cells[column], self.lines, strict=True)),
            np.float64,
            len(self.lines),
        )

    def _number(self, cell: str, line: int, column: str) -> float:
        if is_missing(cell):
            return math.nan
        if not is_number(cell):
            raise DataError(
                f"{self.path}, line {line}, column {column!r}: {cell!r} is no number; mend it or leave it out"
            )
        return float(cell)


def read_table(path: str) -> Table:
    """The table of a CSV file whose first line names the columns; cut at commas, semicolons or tabs."""
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder: name one CSV file")
    rows = _rows(path)
    header, at = next(rows, ([], 0))
    names = [name or f"column {i}" for i, name in enumerate(header, start=1)]
    refuse_columns(len(names), f"{path}, line {at}")
    columns, lines = [Packed() for _ in names], array("q")
    for row, line in rows:
        if not lines:
            _refuse_names(names, f"{path}, line {at}")
        if len(row) != len(names):
            raise DataError(f"{path}, line {line}: {len(row)} cells where the header has {len(names)}; mend that line")
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
        lines.append(line)
    if not lines:
        raise DataError(f"{path} holds no rows below a header: give a CSV file of named columns")
    return Table(path, dict(zip(names, columns, strict=True)), lines)


def _rows(path: str) -> Iterator[tuple[list[str], int]]:
    """The rows that are not blank, without blanks around their cells, and the line on which each ends."""
    source = (line + "\n" for line in read_lines(path, returns=True))
    first = next(source)
    reader = csv.reader(chain([first], source), delimiter=max(DELIMITERS, key=first.count))
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield cells, reader.line_num
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: no good CSV ({error}); mend that line") from None


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.lower() in MISSING


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


def _refuse_names(header: list[str], where: str) -> None:
    for name, count in Counter(header).items():
        if is_number(name) or as_time(name) is not None:
            raise DataError(f"{where}: {name!r} is no name of a column; begin the file with a line of names")
        if count > 1:
            raise DataError(f"{where}: {count} columns are called {name!r}; rename all but one")
