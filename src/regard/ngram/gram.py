"""Grams: the n-grams of every order, read off the one sorted table of counts, and where each one's last words stand.

A new n-gram begins in a row that differs from the row before in one of its first columns. The table is read from its
beginning to its end, a part at a time, and what is found is put at the end of arrays that may be files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.workers import ThisProcess, Workers
from regard.ngram.coding import search
from regard.ngram.counts import Counts
from regard.ngram.spill import Stored, add, landed, searched, shipped
from regard.storage.arrays import Spool, as_mapped, release, slices

# Bytes that a row of counts, or an n-gram, takes while it is worked on: copies, places, keys, sorted orders.
ROW_BYTES = 240
# Arrays that are kept while an order is worked on, each of which may take an equal part of a share of the memory.
ARRAYS, SHARE = 16, 4


@dataclass(frozen=True)
class Desk:
    """Where estimating works: bytes of memory, about, and a folder for what does not fit.

    workers  who does it, each in so much memory. Other processes than this one find arrays in `folder` by their names.
    """

    memory: int
    folder: Path | None
    workers: Workers = field(default_factory=ThisProcess)
    _names: Iterator[int] = field(default_factory=count)

    @property
    def at_once(self) -> int:
        """Rows or n-grams that are worked on together."""
        return max(1024, self.memory // ROW_BYTES)

    def parts(self, size: int) -> Iterator[slice]:
        """So many rows or n-grams in parts, one at least."""
        return (slice(first, min(first + self.at_once, size)) for first in range(0, max(1, size), self.at_once))

    def spool(self, kind: np.dtype | type) -> Spool:
        if self.workers.is_here or self.folder is None:
            return Spool(kind, self.memory // (ARRAYS * SHARE), self.folder)
        return Spool(kind, 0, name=self.folder / f"array-{next(self._names)}")


@dataclass
class Grams:
    """The n-grams of one order above 1, in ascending order.

    keys    context x V + word, where the context is the place of its first n - 1 words among the n-grams one shorter.
    raw     how often each occurred.
    begins  whether it begins a sentence.
    suffix  the place of its last n - 1 words among the n-grams one shorter; empty where nobody asks.
    left    the number of different words before it; empty where nobody asks.
    """

    keys: np.ndarray
    raw: np.ndarray
    begins: np.ndarray
    suffix: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    left: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.raw)

    def counts(self, part: slice) -> np.ndarray:
        """What they are estimated from: an n-gram that begins a sentence has no word before it and keeps its count."""
        return np.where(self.begins[part], self.raw[part], self.left[part]) if len(self.left) else self.raw[part]

    def shipped(self) -> Grams:
        """The same as it goes to another process."""
        arrays: Any = [shipped(array) for array in (self.keys, self.raw, self.begins, self.suffix, self.left)]
        return Grams(*arrays)

    def landed(self) -> Grams:
        """What was shipped, in the process that it came to."""
        return Grams(*map(landed, (self.keys, self.raw, self.begins, self.suffix, self.left)))

    def release(self) -> None:
        for array in (self.keys, self.raw, self.begins, self.suffix, self.left):
            release(array)


def grams_of(counted: Counts, desk: Desk, tell: Callable[[float], None] = lambda _: None) -> list[Grams]:
    """The n-grams of order 1, 2 and so on. Of order 1 every token is one, seen or not."""
    total = sum(int(part.sum()) for (part,) in slices(counted.counts))
    kind = np.int32 if total < 1 << 31 else np.int64
    orders = [_Order(counted, desk, kind) for _ in range(2, counted.order + 1)]
    words = np.zeros(counted.vocab_size, np.int64)
    arrays: Any = [shipped(array) for array in (*counted.columns, counted.counts)]
    reader = _Reader(arrays, counted.vocab_size, counted.eos_id)
    parts = [slice(first, first + desk.at_once) for first in range(0, len(counted), desk.at_once)]
    for number, found in enumerate(desk.workers.map(reader, parts), 1):
        words[found.low : found.low + len(found.words)] += found.words
        before = 0  # n-grams of the order below that were read before this part; of tokens themselves there are none
        for order, read in zip(orders, found.orders, strict=True):
            order.take(read, before)
            before = order.before
        tell(number / len(parts))
    nothing = np.zeros(counted.vocab_size, bool)
    return [Grams(np.arange(counted.vocab_size), words, nothing), *(order.grams() for order in orders)]


@dataclass(frozen=True)
class _Read:
    """New n-grams of one order among some rows.

    keys   with places among those of these rows; -1 is the last n-gram before them.
    sums   how often each occurred in them. ahead: the same of the last n-gram before them.
    """

    keys: np.ndarray
    sums: np.ndarray
    begins: np.ndarray
    ahead: int


@dataclass(frozen=True)
class _Rows:
    """What was read off some rows: counts of tokens from `low` on, and the n-grams of every order from 2 on."""

    low: int
    words: np.ndarray
    orders: list[_Read]


@dataclass(frozen=True)
class _Reader:
    """Reads rows of a table: what it finds depends on them and on the row before them."""

    arrays: list[np.ndarray | Stored]
    vocab_size: int
    eos_id: int

    def __call__(self, rows: slice) -> _Rows:
        *whole, all_counts = map(landed, self.arrays)
        columns, counts = [column[rows] for column in whole], all_counts[rows]
        differs = np.zeros(len(counts), bool)
        places = columns[0].astype(np.int64) - 1
        begins = columns[0] == self.eos_id + 1
        found: list[_Read] = []
        for j, column in enumerate(columns):
            differs[1:] |= column[1:] != column[:-1]
            differs[0] |= rows.start == 0 or column[0] != whole[j][rows.start - 1]
            if j > 0:
                new = differs & (column != 0)
                found.append(self._order(np.flatnonzero(new), places, column, counts, begins))
                places = np.cumsum(new) - 1
        low, words = self._words(columns, counts)
        for array in (*whole, all_counts):
            release(array)
        return _Rows(low, words, found)

    def _order(
        self, rows: np.ndarray, places: np.ndarray, column: np.ndarray, counts: np.ndarray, begins: np.ndarray
    ) -> _Read:
        """The n-grams that begin in `rows`. places: of each row's n-gram one shorter."""
        weights = np.where(column != 0, counts, 0)
        ahead = int(weights[: rows[0] if len(rows) else len(weights)].sum())
        sums = np.add.reduceat(weights, rows) if len(rows) else np.zeros(0, np.int64)
        keys = places[rows] * self.vocab_size + (column[rows].astype(np.int64) - 1)
        return _Read(keys, sums, begins[rows], ahead)

    def _words(self, columns: list[np.ndarray], counts: np.ndarray) -> tuple[int, np.ndarray]:
        """The first of the tokens and the counts from it on.

        The beginning of a sentence is a context and no token: it is not counted as one.
        """
        weights = counts
        if len(columns) > 1:
            weights = np.where((columns[0] == self.eos_id + 1) & (columns[1] != 0), 0, counts)
        tokens = columns[0].astype(np.int64) - 1
        low = int(tokens[0])
        return low, np.bincount(tokens - low, weights).astype(np.int64)


class _Order:
    """The n-grams of one order as they are read. The last one of a part may go on in the next.

    before  how many there were before the part that was taken last.
    """

    def __init__(self, counted: Counts, desk: Desk, kind: type[np.signedinteger]) -> None:
        self.vocab_size = counted.vocab_size
        self.keys, self.raw, self.begins = desk.spool(np.int64), desk.spool(kind), desk.spool(bool)
        self.before = self.size = 0
        self.open: int | None = None

    def take(self, read: _Read, contexts: int) -> None:
        """Take what was read. contexts: how many n-grams one shorter there were before."""
        if len(read.keys):
            if self.open is not None:
                self.raw.append(np.array([self.open + read.ahead]))
            self.raw.append(read.sums[:-1])
            self.open = int(read.sums[-1])
            self.keys.append(read.keys + contexts * self.vocab_size)
            self.begins.append(read.begins)
        elif self.open is not None:
            self.open += read.ahead
        self.before, self.size = self.size, self.size + len(read.keys)

    def grams(self) -> Grams:
        if self.open is not None:
            self.raw.append(np.array([self.open]))
        return Grams(self.keys.array(), self.raw.array(), self.begins.array())


def adjusted(grams: list[Grams], vocab_size: int, desk: Desk) -> None:
    """Let every order know the suffixes of its n-grams, and every one below the highest how many words came before."""
    for shorter, longer in pairwise(grams):
        suffix = desk.spool(np.int32 if len(shorter) < 1 << 31 else np.int64)
        left = desk.spool(shorter.raw.dtype)
        for part in desk.parts(len(shorter)):
            left.append(np.zeros(part.stop - part.start, shorter.raw.dtype))
        shorter.left = left.array()
        finder = _Finder(shorter.shipped(), shipped(longer.keys), vocab_size)
        parts = (slice(first, first + desk.at_once) for first in range(0, len(longer), desk.at_once))
        for place, found, amounts in desk.workers.map(finder, parts):
            suffix.append(place)
            add(shorter.left, found, amounts)
        longer.suffix = suffix.array()


@dataclass(frozen=True)
class _Finder:
    """Finds the places of n-grams' last words among those one shorter, and how often each comes up."""

    shorter: Grams
    keys: np.ndarray | Stored
    vocab_size: int

    def __call__(self, part: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shorter, all_keys = self.shorter.landed(), landed(self.keys)
        keys = all_keys[part]
        context = keys // self.vocab_size
        word = keys - context * self.vocab_size
        place, in_order = (word, np.sort(word)) if not len(shorter.suffix) else self._places(shorter, context, word)
        starts = np.flatnonzero(np.diff(in_order, prepend=-1))
        release(all_keys)
        shorter.release()
        return place, in_order[starts], np.diff(starts, append=len(in_order))

    def _places(self, shorter: Grams, context: np.ndarray, word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low = int(context[0])
        wanted = shorter.suffix[low : int(context[-1]) + 1][context - low] * np.int64(self.vocab_size) + word
        if as_mapped(shorter.keys) is None:
            place = search(shorter.keys, wanted)
            return place, np.sort(place)
        order = wanted.argsort()
        in_order = searched(shorter.keys, wanted[order])
        place = np.empty_like(in_order)
        place[order] = in_order
        return place, in_order
