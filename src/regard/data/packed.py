"""Columns of a file in little memory: many short values in one piece, each made when it is asked for.

A list of two million short texts takes ten times the bytes of the texts. Here a column is a sequence like any other;
what it holds is bytes and numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, TypeVar, overload

import numpy as np

from regard.data.source import shown
from regard.storage.arrays import Spool, release

T = TypeVar("T")
NOTHING = b"\xff"  # no text in UTF-8 holds this byte
AT_ONCE = 1 << 14  # numbers of rows that are in memory as Python's own
WAITING = 1 << 20  # bytes of a column that wait to be joined


class Column(Sequence[T]):
    """Base of the columns: a slice is a view of the rest."""

    def value(self, row: int) -> T:
        """What stands in a row."""
        raise NotImplementedError

    def at(self, rows: np.ndarray) -> Iterator[T]:
        """What stands in some rows, in their order."""
        return map(self.value, rows.tolist())

    def raw(self, rows: np.ndarray) -> Iterator[Any]:
        """The same as it was before it was made the text of a cell: a number, a list, as far as that is known."""
        return self.at(rows)

    def release(self) -> None:
        """Let go of what was read so far, where it lies in a file: pages that were touched count as memory."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return Chosen(self, np.arange(len(self))[index])
        return self.value(range(len(self))[index])

    def __iter__(self) -> Iterator[T]:
        return map(self.value, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other))  # noqa: B905

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # grows, and equals a list


class Packed(Column[Any]):
    """Texts laid end to end in UTF-8, and where each ends, in files without a name once they are many.

    None is a cell that there is not.
    """

    def __init__(self, texts: Iterable[str | None] = ()) -> None:
        self._spool = Spool(np.uint8)
        self._waiting = bytearray()
        self._ends, self._end = Spool(np.int64), 0
        self._new_ends = array("q", [0])
        self._stops: np.ndarray = np.zeros(1, np.int64)
        self._rows = 0
        self._whole: np.ndarray | None = None
        for text in texts:
            self.append(text)

    def append(self, text: str | None) -> None:
        # Half a character, which JSON can spell, is kept for whoever refuses it.
        data = NOTHING if text is None else text.encode("utf-8", "surrogatepass")
        self._waiting += data
        self._end += len(data)
        self._new_ends.append(self._end)
        self._rows += 1
        self._whole = None
        if len(self._waiting) > WAITING or len(self._new_ends) > AT_ONCE:
            self._join()

    def __len__(self) -> int:
        return self._rows

    def value(self, row: int) -> str | None:
        data = self._data
        return _text(data[self._stops[row] : self._stops[row + 1]].tobytes())

    def __iter__(self) -> Iterator[str | None]:
        data, stops = self._data, self._stops
        for first in range(0, len(self), AT_ONCE):
            here = stops[first : first + AT_ONCE + 1].tolist()
            part = data[here[0] : here[-1]].tobytes()
            yield from (_text(part[start - here[0] : stop - here[0]]) for start, stop in pairwise(here))

    def release(self) -> None:
        if self._whole is not None:
            release(self._whole)
            release(self._stops)

    @property
    def _data(self) -> np.ndarray:
        """All texts, where `_stops` are the ends of them."""
        if self._whole is None:
            self._join()
            self._whole, self._stops = self._spool.array(), self._ends.array()
        return self._whole

    def _join(self) -> None:
        self._spool.append(np.frombuffer(bytes(self._waiting), np.uint8))
        self._waiting.clear()
        self._ends.append(np.frombuffer(self._new_ends, np.int64))
        self._new_ends = array("q")


def _text(data: bytes) -> str | None:
    return None if data == NOTHING else data.decode("utf-8", "surrogatepass")


class Coded(Column[str]):
    """Texts of few different kinds, each as a number."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._number: dict[str, int] = {}
        self._codes = array("i")
        self._names: list[str] = []
        for text in texts:
            self.append(text)

    def append(self, text: str) -> None:
        number = self._number.setdefault(text, len(self._names))
        if number == len(self._names):
            self._names.append(text)
        self._codes.append(number)

    def __len__(self) -> int:
        return len(self._codes)

    @classmethod
    def of(cls, names: Sequence[str], codes: np.ndarray) -> Coded:
        """The texts of `names` by their numbers; a name may be there twice."""
        coded = cls(names)
        coded._codes = array("i", np.array(coded._codes, np.int32)[codes].tobytes())
        return coded

    def n_different(self, rows: np.ndarray) -> int:
        """How many different texts stand in some rows."""
        return len(np.unique(np.frombuffer(self._codes, np.int32)[rows]))

    def value(self, row: int) -> str:
        return self._names[self._codes[row]]

    def __iter__(self) -> Iterator[str]:
        return map(self._names.__getitem__, self._codes)


@dataclass(frozen=True, eq=False)
class Nested(Column[tuple[Any, ...]]):
    """Rows of several values: `values` of all of them, and where each row ends among them."""

    values: Column[Any]
    stops: array[int]

    def __len__(self) -> int:
        return len(self.stops)

    def value(self, row: int) -> tuple[Any, ...]:
        return tuple(map(self.values.value, range(self.stops[row - 1] if row else 0, self.stops[row])))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        rest, start = iter(self.values), 0
        for stop in self.stops:
            yield tuple(next(rest) for _ in range(stop - start))
            start = stop


@dataclass(frozen=True, eq=False)
class Places(Column[str]):
    """Where rows were read, such as "train.tsv, line 3". unit: what is counted, lines of a text or rows of a table."""

    path: str
    lines: Sequence[int] | np.ndarray
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.lines)

    def value(self, row: int) -> str:
        return f"{shown(self.path)}, {self.unit} {self.lines[row]}"


@dataclass(frozen=True, eq=False)
class Mapped(Column[T]):
    """The values of a column, each as a function makes it when it is asked for."""

    values: Column[Any]
    make: Callable[[Any], T]

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> T:
        return self.make(self.values.value(row))

    def at(self, rows: np.ndarray) -> Iterator[T]:
        return map(self.make, self.values.at(rows))

    def release(self) -> None:
        self.values.release()

    def __iter__(self) -> Iterator[T]:
        return map(self.make, self.values)


@dataclass(frozen=True, eq=False)
class Numbers(Column[float]):
    """Numbers, (n,)."""

    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> float:
        return float(self.values[row])


@dataclass(frozen=True, eq=False)
class Chosen(Column[T]):
    """Some values of a column, by the numbers of their rows."""

    values: Column[T]
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def value(self, row: int) -> T:
        return self.values.value(int(self.rows[row]))

    def __iter__(self) -> Iterator[T]:
        for first in range(0, len(self.rows), AT_ONCE):
            yield from self.values.at(self.rows[first : first + AT_ONCE])

    def at(self, rows: np.ndarray) -> Iterator[T]:
        return self.values.at(self.rows[rows])

    def raw(self, rows: np.ndarray) -> Iterator[Any]:
        return self.values.raw(self.rows[rows])

    def release(self) -> None:
        self.values.release()


class Joined(Column[Any]):
    """Columns one below the other."""

    def __init__(self, parts: Sequence[Column[Any]]) -> None:
        self.parts = parts
        self.stops = np.cumsum([len(part) for part in parts])

    def __len__(self) -> int:
        return int(self.stops[-1])

    def value(self, row: int) -> Any:
        part, place = self._place(row)
        return self.parts[part].value(place)

    def raw(self, rows: np.ndarray) -> Iterator[Any]:
        for part, place in map(self._place, rows.tolist()):
            yield from self.parts[part].raw(np.array([place]))

    def release(self) -> None:
        for part in self.parts:
            part.release()

    def _place(self, row: int) -> tuple[int, int]:
        """Which column a row stands in, and where there."""
        part = int(np.searchsorted(self.stops, row, side="right"))
        return part, row - (int(self.stops[part - 1]) if part else 0)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.parts)
