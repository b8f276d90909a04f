"""Dialect: what stands between the cells of a table, told from its first rows or by a person."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass

from regard.errors import UsageError

DELIMITERS = ("\t", ",", ";", "|")
WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
TOLD = {"\t": "TABs", ",": "commas", ";": "semicolons", "|": "bars", " ": "spaces"}
# Rows by which a table is known when nothing else says that it is one.
FEWEST, MOST = 4, 200
QUOTE = '"'


@dataclass(frozen=True)
class Dialect:
    """delimiter: between cells. quotes: whether a cell may stand in double quotes. width: cells of the first rows."""

    delimiter: str
    quotes: bool = True
    width: int = 0

    @property
    def told(self) -> str:
        between = TOLD.get(self.delimiter, repr(self.delimiter))
        return f"a table of {self.width} columns with {between} between them"

    @property
    def suffix(self) -> str:
        return ".tsv" if self.delimiter == "\t" else ".csv"


def delimiter_named(told: str) -> str:
    """The one character that a setting means: itself, or tab, comma, semicolon, pipe, space."""
    found = WORDS.get(told.lower(), told)
    if len(found) != 1 or not found.isascii() or found in ('"', "\n", "\r"):
        raise UsageError(
            f"data.delimiter: {told!r} is no delimiter; give one character, or tab, comma, semicolon, pipe"
        )
    return found


def sniffed(head: bytes, *, is_told: bool, is_whole: bool) -> Dialect | None:
    """The dialect of what begins so; None of what is no table.

    is_told  whether its name says that it is one; then the likeliest delimiter is taken. Otherwise it takes several
             rows, all of them with the same number of cells.
    """
    text = head.decode("utf-8", "ignore").removeprefix("\ufeff")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    rows = [row.removesuffix("\r") for row in text.split("\n")]
    rows = [row for row in (rows if is_whole else rows[:-1] or rows) if row.strip()][:MOST]
    found = [(_best_fit(rows, mark), mark) for mark in DELIMITERS]
    best = max(found, key=lambda one: one[0]) if rows else None
    if best is None or best[0] == (0.0, 0):
        # One column is a table too, where the name says so.
        return Dialect(",", True, 1) if is_told and rows else None
    (share, width), mark = best
    dialect = Dialect(mark, mark != "\t" or _quoted(rows), width)
    if is_told:
        return dialect
    is_sure = share == 1.0 and len(rows) >= (FEWEST if mark == "\t" else 2 * FEWEST)
    # Prose has commas: a table of them has short cells, names above them, or numbers in a column.
    return dialect if is_sure and (mark == "\t" or _looks_tabular(rows, dialect)) else None


def with_quotes(head: bytes, delimiter: str) -> Dialect:
    """The dialect with a delimiter that somebody told."""
    rows = [row for row in head.decode("utf-8", "ignore").replace("\r", "\n").split("\n") if row][:MOST]
    return Dialect(delimiter, delimiter != "\t" or _quoted(rows), rows[0].count(delimiter) + 1 if rows else 0)


def _fits(rows: list[str], mark: str, quotes: bool | None = None) -> tuple[float, int]:
    """How large a share of the rows have the commonest number of cells, and that number; (0, 0) of one cell a row."""
    quoting = csv.QUOTE_MINIMAL if (mark != "\t" if quotes is None else quotes) else csv.QUOTE_NONE
    try:
        cells = list(csv.reader(io.StringIO("\n".join(rows)), delimiter=mark, quotechar=QUOTE, quoting=quoting))
    except csv.Error:
        return (0.0, 0)
    widths = Counter(len(row) for row in cells if row)
    if not widths:
        return (0.0, 0)
    first = len(next(row for row in cells if row))
    width, count = max(widths.items(), key=lambda one: (one[1], one[0] == first))
    return (count / widths.total(), width) if width > 1 else (0.0, 0)


def _best_fit(rows: list[str], mark: str) -> tuple[float, int]:
    return max(_fits(rows, mark), _fits(rows, mark, quotes=True)) if mark == "\t" else _fits(rows, mark)


def _quoted(rows: list[str]) -> bool:
    """Whether quotes in a TSV are those of a table: around whole cells, doubled within, and needed or everywhere.

    Texts of people begin and end with quotation marks as well; those are characters like any other.
    """
    cells = [cell for row in rows for cell in row.split("\t")]
    opened = [cell for cell in cells if cell.startswith(QUOTE)]
    if not opened:
        return False
    whole = [cell for cell in opened if len(cell) > 1 and cell.endswith(QUOTE)]
    clean = [cell for cell in whole if QUOTE not in cell[1:-1].replace(QUOTE * 2, "")]
    doubled = any(QUOTE * 2 in cell[1:-1] for cell in clean)
    header = rows[0].split("\t")
    named = any(len(cell) > 2 and cell.startswith(QUOTE) and cell.endswith(QUOTE) for cell in header)
    # A line end within quotes tears a row apart where quotes are taken as characters, and not where they are not.
    is_torn = _fits(rows, "\t", quotes=False)[0] < 1.0 == _fits(rows, "\t", quotes=True)[0]
    return is_torn or (len(clean) == len(opened) and (doubled or named))


def _looks_tabular(rows: list[str], dialect: Dialect) -> bool:
    cells = list(csv.reader(rows, delimiter=dialect.delimiter))
    below = cells[1:]
    names = all(cell and len(cell) <= 40 and cell == cell.strip() for cell in cells[0])
    numbers = any(all(_is_number(row[i]) for row in below if i < len(row)) for i in range(dialect.width))
    tight = not any(cell.startswith(" ") for row in cells for cell in row)
    return (names and (numbers or tight)) or (numbers and tight)


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True
