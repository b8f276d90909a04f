"""Tables: the columns of a CSV file with a header, as times or as numbers, every bad cell named by line and column."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from regard.data.source import read_documents
from regard.errors import DataError, UsageError, nearest

MISSING = ("", "nan", "na", "n/a", "null", "none")
DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True)
class Table:
    """The cells of a file as text, by column, without blanks around them, and the line of every row."""

    path: str
    cells: dict[str, list[str]]
    lines: list[int]

    def column(self, name: str, role: str) -> str:
        """That name, if a column is called so; `role` is the setting that asked for it."""
        if name not in self.cells:
            raise UsageError(f"{role} = {name!r}: {self.path} has no such column{nearest(name, self.cells)}")
        return name

    def numeric(self, but: Iterable[str] = ()) -> list[str]:
        """Columns whose first filled cell is a number; a later cell that is none is then a slip, to be refused."""
        first = {name: next((cell for cell in cells if not is_missing(cell)), "") for name, cells in self.cells.items()}
        return [name for name, cell in first.items() if name not in but and is_number(cell)]

    def dated(self) -> list[str]:
        """Columns whose first cell is a time."""
        return [name for name, cells in self.cells.items() if as_time(cells[0]) is not None]

    def times(self, column: str) -> np.ndarray:
        """The times of a column, (n,) datetime64[s]. Those with an offset from UTC are turned into UTC."""
        found: list[datetime] = []
        for cell, line in zip(self.cells[column], self.lines, strict=True):
            time = as_time(cell)
            if time is None or time.microsecond or (found and (time.tzinfo is None) != (found[0].tzinfo is None)):
                raise DataError(
                    f"{self.path}, line {line}, column {column!r}: {cell!r} is no time, or not written as the others; "
                    f"write 2013-01-31 23:00:00 in every row"
                )
            found.append(time)
        plain = [time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None) for time in found]
        return np.array(plain, dtype="datetime64[s]")

    def numbers(self, column: str) -> np.ndarray:
        """The numbers of a column, (n,) float64, NaN where a cell is empty."""
        cells = self.cells[column]
        for cell, line in zip(cells, self.lines, strict=True):
            if not is_missing(cell) and not is_number(cell):
                raise DataError(
                    f"{self.path}, line {line}, column {column!r}: {cell!r} is no number; mend it or leave it out"
                )
        return np.array([math.nan if is_missing(cell) else float(cell) for cell in cells])


def read_table(path: str) -> Table:
    """The table of a CSV file whose first line names the columns; cut at commas, semicolons or tabs."""
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder: name one CSV file")
    text = next(read_documents(path))
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([cell.strip() for cell in row])
                lines.append(reader.line_num)
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: no good CSV ({error}); mend that line") from None
    if len(rows) < 2:
        raise DataError(f"{path} holds no rows below a header: give a CSV file of named columns")
    header = [name or f"column {i}" for i, name in enumerate(rows[0], start=1)]
    _refuse_names(header, f"{path}, line {lines[0]}")
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise DataError(f"{path}, line {line}: {len(row)} cells where the header has {len(header)}; mend that line")
    columns = zip(*rows[1:], strict=True)
    return Table(path, {name: list(cells) for name, cells in zip(header, columns, strict=True)}, lines[1:])


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
