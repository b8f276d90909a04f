"""Cells: the rows of a table in a text, found in its bytes by one pass over them and read when they are asked for.

The text is copied as it comes to memory, or beyond 64 MB to a file without a name, with where each cell begins. Rows
are found many at a time: in a CSV a delimiter or a line end counts where the number of quotes before it is even, which
is what RFC 4180 comes to. Where quotes stand otherwise, Python's own reader goes through the text row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from regard.core.progress import stage
from regard.data.csv_rows import ragged, refuse_columns, row_by_row
from regard.data.decoding import HEAD, LINE_LIMIT, decoded, refuse_foreign
from regard.data.delimiter import Dialect
from regard.data.packed import Column, Packed
from regard.data.parity import odd_so_far
from regard.data.source import named, opened, shown
from regard.errors import DataError
from regard.storage.arrays import Spool, release

CHUNK, LITTLE = 1 << 23, 1 << 14  # bytes of a text that are gone through at a time: of all of it, of its head
NEWLINE, RETURN, QUOTE = 10, 13, 34
MARK = b"\xef\xbb\xbf"
BLANKS = np.frombuffer(b" \t\r\n", np.uint8)
AT_ONCE = 1 << 12  # cells that are made at a time
SPREAD = 16  # rows among which one is asked for, while it is worth to take the bytes of all
SHORT = 7  # bytes of a cell that are compared as one number


@dataclass(frozen=True, eq=False)
class Cells(Column[str]):
    """A column: cells that stay in the bytes of the text.

    bounds  (n, 2), where each begins and one after where it ends. quotes: whether one may stand in quotes.
    """

    data: np.ndarray
    bounds: np.ndarray
    quotes: bool

    def __len__(self) -> int:
        return len(self.bounds)

    def value(self, row: int) -> str:
        start, stop = self.bounds[row].tolist()
        return self._text(self.data[start : stop - 1].tobytes())

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), AT_ONCE):
            yield from self._made(self.bounds[first : first + AT_ONCE])

    def at(self, rows: np.ndarray) -> Iterator[str]:
        for first in range(0, len(rows), AT_ONCE):
            some = rows[first : first + AT_ONCE]
            # Of rows that lie together the bytes are taken once; others are made one by one.
            is_dense = 0 <= int(some[-1]) - int(some[0]) < SPREAD * len(some) and (np.diff(some) >= 0).all()
            yield from self._made(self.bounds[some]) if is_dense else map(self.value, some.tolist())

    def _made(self, bounds: np.ndarray) -> Iterator[str]:
        here = bounds.astype(np.int64)
        low = int(here[0, 0])
        part, text = self.data[low : int(here[-1, 1])].tobytes(), self._text
        both = zip((here[:, 0] - low).tolist(), (here[:, 1] - low - 1).tolist(), strict=True)
        if not part.isascii():
            return (text(part[start:stop]) for start, stop in both)
        # A byte is a character, so that all are decoded at once.
        whole = part.decode("ascii")
        found = (whole[start:stop] for start, stop in both)
        return map(_unquoted, found) if self.quotes and '"' in whole else found

    def release(self) -> None:
        for array in (self.data, self.bounds):
            release(array if array.base is None else array.base)

    def below(self) -> Cells:
        """The column without its first cell."""
        return replace(self, bounds=self.bounds[1:])

    @property
    def sizes(self) -> np.ndarray:
        """Bytes of each cell as it stands in the text, (n,)."""
        return self.bounds[:, 1].astype(np.int64) - self.bounds[:, 0] - 1

    @property
    def begins_blank(self) -> np.ndarray:
        """Whether a cell begins with a blank, also behind a quote, (n,) bool."""
        first, second = self.data[self.bounds[:, 0]], self.data[np.minimum(self.bounds[:, 0] + 1, len(self.data) - 1)]
        return np.isin(first, BLANKS) | ((first == QUOTE) & np.isin(second, BLANKS))

    @cached_property
    def short(self) -> Groups:
        """The cells of at most SHORT bytes, equal ones together."""
        sizes = self.sizes
        rows = np.flatnonzero(sizes <= SHORT)
        starts, sizes = self.bounds[rows, 0].astype(np.int64), sizes[rows]
        keys = sizes.astype(np.uint64) << np.uint64(56)
        for place in range(SHORT):
            byte = self.data[np.minimum(starts + place, len(self.data) - 1)].astype(np.uint64)
            keys |= np.where(place < sizes, byte, np.uint64(0)) << np.uint64(8 * place)
        return Groups(rows, *np.unique(keys, return_index=True, return_inverse=True)[1:])

    def _text(self, data: bytes) -> str:
        if self.quotes and data[:1] == b'"':
            data = data[1:-1].replace(b'""', b'"')
        return data.decode("utf-8")


def _unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if cell[:1] == '"' else cell


@dataclass(frozen=True)
class Groups:
    """Rows whose cells are equal. first: of each group, among `rows`; group: of each row."""

    rows: np.ndarray
    first: np.ndarray
    group: np.ndarray


@dataclass(frozen=True)
class Grid:
    """The columns of a text, and the number of the line on which each row begins."""

    columns: Sequence[Column[str] | Packed]
    lines: np.ndarray


class Stray(Exception):
    """A quote that stands where RFC 4180 has none."""


def read_cells(path: str, dialect: Dialect, encoding: str | None = None, most: int | None = None) -> Grid:
    """The table in a text file; blank lines are no rows. most: rows that are asked for, and a few more are read."""
    index = _Index(path, dialect)
    try:
        with named(path), opened(path, encoding) as stream, stage("reading", 0, "bytes") as advance:
            refuse_foreign(stream, shown(path))
            size = LITTLE
            while chunk := stream.read(size):
                index.add(chunk)
                advance(len(chunk))
                # Never more at once than was read before: a small file takes little memory, a large one few turns.
                size = LITTLE if most is not None else min(CHUNK, 2 * size)
                if most is not None and index.lines.size >= most:
                    return index.grid()
            index.finish()
    except Stray:
        return Grid(*row_by_row(path, dialect, encoding, most))
    return index.grid()


class _Index:
    """Finds the cells of a text that comes in chunks."""

    def __init__(self, path: str, dialect: Dialect) -> None:
        self.path, self.dialect = path, dialect
        self.text = Spool(np.uint8)
        self.bounds: Spool | None = None
        self.lines = Spool(np.int64)
        self.rest = b""
        self.offset, self.line, self.width = 0, 1, 0
        self.first_line = 1
        self.mark = 0  # bytes before the text
        self.returns: bool | None = None  # whether a carriage return alone ends a line

    def add(self, chunk: bytes) -> None:
        if self.offset == 0 and not self.rest and chunk.startswith(MARK):
            chunk, self.mark = chunk.removeprefix(MARK), len(MARK)
        data = self.rest + (chunk.replace(b"\r", b"\n") if self.returns else chunk)
        if self.returns is None:
            data = self._with_line_ends(data)
        self.rest = data if self.returns is None else data[self._rows(np.frombuffer(data, np.uint8)) :]
        if len(self.rest) > LINE_LIMIT:
            self._too_long()

    def _with_line_ends(self, data: bytes) -> bytes:
        """The first bytes, once they tell whether a carriage return alone ends a line."""
        if b"\n" in data:
            self.returns = False
        elif len(data) > HEAD and b"\r" in data[:-1]:
            self.returns = True
        return data.replace(b"\r", b"\n") if self.returns else data

    def finish(self) -> None:
        if self.returns is None:
            self.rest = self.rest.replace(b"\r", b"\n")
        if self.rest:
            data, self.rest = self.rest + b"\n", b""
            if self._rows(np.frombuffer(data, np.uint8)) < len(data):
                raise Stray

    def grid(self) -> Grid:
        if self.bounds is None:
            raise DataError(f"{shown(self.path)} {'holds nothing but blank lines' if self.offset else 'is empty'}")
        # A plain view: a slice of a mapped array costs four times as much.
        data = self.text.array().view(np.ndarray)
        bounds = self.bounds.array().view(np.ndarray).reshape(-1, self.width + 1)
        columns: list[Column[str]] = [
            Cells(data, bounds[:, place : place + 2], self.dialect.quotes) for place in range(self.width)
        ]
        return Grid(columns, self.lines.array().view(np.ndarray))

    def _rows(self, data: np.ndarray) -> int:
        """Take in the whole rows of some bytes; how many bytes those are."""
        marks = (data == NEWLINE) | (data == ord(self.dialect.delimiter))
        is_quote = data == QUOTE if self.dialect.quotes else np.zeros(0, bool)
        quotes = np.flatnonzero(is_quote)
        if len(quotes):
            marks &= ~odd_so_far(is_quote)
        places = np.flatnonzero(marks)
        ends = np.flatnonzero(data[places] == NEWLINE)
        if not len(ends):
            return 0
        taken = int(places[ends[-1]]) + 1
        self._check(data, quotes[quotes < taken], taken)
        self._add_bounds(data, places[: ends[-1] + 1], ends)
        self.text.append(data[:taken])
        self.offset += taken
        return taken

    def _check(self, data: np.ndarray, quotes: np.ndarray, taken: int) -> None:
        """Refuse bytes that are no text; stop where a quote opens or closes within a cell."""
        text = data[:taken].tobytes()
        if not text.isascii():
            decoded(text, shown(self.path), self.mark + self.offset, self.line)
        if not len(quotes):
            return
        edges = (NEWLINE, RETURN, ord(self.dialect.delimiter), QUOTE)
        before = data[np.maximum(quotes[::2] - 1, 0)]
        opened = np.isin(before, edges) | (quotes[::2] == 0)
        closed = np.isin(data[np.minimum(quotes[1::2] + 1, taken - 1)], edges)
        if not opened.all() or not closed.all():
            raise Stray

    def _add_bounds(self, data: np.ndarray, places: np.ndarray, ends: np.ndarray) -> None:
        """Where the cells between the marks at `places` begin; those at `ends` among them end rows."""
        stops = places[ends]
        starts = np.concatenate([[0], stops[:-1] + 1])
        counts = np.diff(ends, prepend=-1)
        # A line end of two characters belongs to no cell.
        short = (stops > starts) & (data[np.maximum(stops - 1, 0)] == RETURN)
        blank = (counts == 1) & (stops - short == starts)
        lines = self._lines(data, starts, int(stops[-1]) + 1)
        if blank.any():
            places, counts = places[~np.repeat(blank, counts)], counts[~blank]
            starts, stops, short, lines = starts[~blank], stops[~blank], short[~blank], lines[~blank]
        if not len(counts):
            return
        if self.bounds is None:
            self.width, self.first_line = int(counts[0]), int(lines[0])
            refuse_columns(self.width, f"{shown(self.path)}, line {lines[0]}")
            self.bounds = Spool(np.uint64)
        for row in np.flatnonzero(counts != self.width)[:1]:
            raise ragged(self.path, int(lines[row]), int(counts[row]), self.first_line, self.width)
        long = np.flatnonzero(stops - starts > LINE_LIMIT)
        if len(long):
            raise DataError(f"{shown(self.path)}, line {lines[long[0]]}: longer than {LINE_LIMIT:,} bytes; break it up")
        grid = np.empty((len(counts), self.width + 1), np.uint64)
        grid[:, 0] = starts
        grid[:, 1:] = places.reshape(-1, self.width) + 1
        grid[:, -1] -= short.astype(np.uint64)
        self.bounds.append((grid + np.uint64(self.offset)).ravel())
        self.lines.append(lines)

    def _lines(self, data: np.ndarray, starts: np.ndarray, taken: int) -> np.ndarray:
        """The number of the line on which each row begins."""
        n_breaks = int(np.count_nonzero(data[:taken] == NEWLINE))
        if n_breaks == len(starts):
            found = self.line + np.arange(len(starts))
        else:
            found = self.line + np.searchsorted(np.flatnonzero(data[:taken] == NEWLINE), starts)
        self.line += n_breaks
        return found

    def _too_long(self) -> None:
        where = f"{shown(self.path)}, line {self.line}"
        if self.dialect.quotes and b'"' in self.rest:
            raise DataError(f"{where}: no good CSV (a row of more than {LINE_LIMIT:,} bytes); is a quote left open?")
        raise DataError(f"{where}: longer than {LINE_LIMIT:,} bytes; break it up")
