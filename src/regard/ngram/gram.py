"""Grams: the n-grams of every order, read off the one sorted table of counts, and where each one's last words stand.

A new n-gram begins in a row that differs from the row before in one of its first columns. The table is read from its
beginning to its end, a part at a time, and what is found is put at the end of arrays that may be files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from regard.ngram.counts import Counts
from regard.ngram.spill import add, searched
from regard.storage.arrays import Spool, release, slices

# Bytes that a row of counts, or an n-gram, takes while it is worked on: copies, places, keys, sorted orders.
ROW_BYTES = 240
# Arrays that are kept while an order is worked on, each of which may take an equal part of a share of the memory.
ARRAYS, SHARE = 16, 4


@dataclass(frozen=True)
class Desk:
    """Where estimating works: bytes of memory, about, and a folder for what does not fit."""

    memory: int
    folder: Path | None

    @property
    def at_once(self) -> int:
        """Rows or n-grams that are worked on together."""
        return max(1024, self.memory // ROW_BYTES)

    def parts(self, size: int) -> Iterator[slice]:
        """So many rows or n-grams in parts, one at least."""
        return (slice(first, min(first + self.at_once, size)) for first in range(0, max(1, size), self.at_once))

    def spool(self, kind: np.dtype | type) -> Spool:
        return Spool(kind, self.memory // (ARRAYS * SHARE), self.folder)


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

    def release(self) -> None:
        for array in (self.keys, self.raw, self.begins, self.suffix, self.left):
            release(array)


def grams_of(counted: Counts, desk: Desk, tell: Callable[[float], None] = lambda _: None) -> list[Grams]:
    """The n-grams of order 1, 2 and so on. Of order 1 every token is one, seen or not."""
    total = sum(int(part.sum()) for (part,) in slices(counted.counts))
    kind = np.int32 if total < 1 << 31 else np.int64
    readers = [_Order(counted, desk, kind) for _ in range(2, counted.order + 1)]
    words = np.zeros(counted.vocab_size, np.int64)
    before: list[int] | None = None
    for first in range(0, len(counted), desk.at_once):
        rows = slice(first, first + desk.at_once)
        columns, counts = [column[rows] for column in counted.columns], counted.counts[rows]
        words += _words(columns, counts, counted)
        differs = np.zeros(len(counts), bool)
        places = columns[0].astype(np.int64) - 1
        for j, column in enumerate(columns):
            differs[1:] |= column[1:] != column[:-1]
            differs[0] |= before is None or int(column[0]) != before[j]
            if j > 0:
                places = readers[j - 1].read(differs, places, columns[0], column, counts)
        before = [int(column[-1]) for column in columns]
        for array in (*counted.columns, counted.counts):
            release(array)
        tell((first + len(counts)) / len(counted))
    nothing = np.zeros(counted.vocab_size, bool)
    return [Grams(np.arange(counted.vocab_size), words, nothing), *(reader.grams() for reader in readers)]


class _Order:
    """The n-grams of one order as they are read. The last one of a part may go on in the next."""

    def __init__(self, counted: Counts, desk: Desk, kind: type[np.signedinteger]) -> None:
        self.vocab_size, self.first = counted.vocab_size, counted.eos_id + 1
        self.keys, self.raw, self.begins = desk.spool(np.int64), desk.spool(kind), desk.spool(bool)
        self.size = 0
        self.open: int | None = None

    def read(
        self, differs: np.ndarray, places: np.ndarray, first: np.ndarray, column: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """Take the n-grams of some rows; the place of each row's own among all of them is given back."""
        there = column != 0
        new = differs & there
        rows = np.flatnonzero(new)
        weights = np.where(there, counts, 0)
        ahead = int(weights[: rows[0] if len(rows) else len(weights)].sum())
        if len(rows):
            sums = np.add.reduceat(weights, rows)
            if self.open is not None:
                self.raw.append(np.array([self.open + ahead]))
            self.raw.append(sums[:-1])
            self.open = int(sums[-1])
            self.keys.append(places[rows] * self.vocab_size + (column[rows].astype(np.int64) - 1))
            self.begins.append(first[rows] == self.first)
        elif self.open is not None:
            self.open += ahead
        own = np.cumsum(new) + (self.size - 1)
        self.size += len(rows)
        return own

    def grams(self) -> Grams:
        if self.open is not None:
            self.raw.append(np.array([self.open]))
        return Grams(self.keys.array(), self.raw.array(), self.begins.array())


def _words(columns: list[np.ndarray], counts: np.ndarray, counted: Counts) -> np.ndarray:
    """Tokens. The beginning of a sentence is a context and no token: it is not counted as one."""
    weights = counts
    if counted.order > 1:
        weights = np.where((columns[0] == counted.eos_id + 1) & (columns[1] != 0), 0, counts)
    return np.bincount(columns[0].astype(np.int64) - 1, weights, counted.vocab_size).astype(np.int64)


def adjusted(grams: list[Grams], vocab_size: int, desk: Desk) -> None:
    """Let every order know the suffixes of its n-grams, and every one below the highest how many words came before."""
    for shorter, longer in pairwise(grams):
        suffix = desk.spool(np.int32 if len(shorter) < 1 << 31 else np.int64)
        left = desk.spool(shorter.raw.dtype)
        for part in desk.parts(len(shorter)):
            left.append(np.zeros(part.stop - part.start, shorter.raw.dtype))
        shorter.left = left.array()
        for first in range(0, len(longer), desk.at_once):
            keys = longer.keys[first : first + desk.at_once]
            context = keys // vocab_size
            word = keys - context * vocab_size
            suffix.append(_suffixes(shorter, context, word, vocab_size))
            longer.release()
            shorter.release()
        longer.suffix = suffix.array()


def _suffixes(shorter: Grams, context: np.ndarray, word: np.ndarray, vocab_size: int) -> np.ndarray:
    """The places of n-grams' last words, which are counted on the way."""
    if not len(shorter.suffix):
        shorter.left += np.bincount(word, minlength=len(shorter)).astype(shorter.left.dtype)
        return word
    low = int(context[0])
    wanted = shorter.suffix[low : int(context[-1]) + 1][context - low] * np.int64(vocab_size) + word
    if isinstance(shorter.keys, np.memmap):
        order = wanted.argsort()
        sorted_places = searched(shorter.keys, wanted[order])
        place = np.empty_like(sorted_places)
        place[order] = sorted_places
    else:
        # torch searches with both cores.
        place = torch.searchsorted(torch.from_numpy(shorter.keys), torch.from_numpy(wanted)).numpy()
        sorted_places = np.sort(place)
    starts = np.flatnonzero(np.diff(sorted_places, prepend=-1))
    add(shorter.left, sorted_places[starts], np.diff(starts, append=len(sorted_places)))
    return place
