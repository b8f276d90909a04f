"""Ragged: many sequences of unequal length, laid end to end."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from regard.storage.arrays import Spool

JOINED = 1 << 16  # values that are joined at a time
AT_ONCE = 64  # sequences that are read side by side where nobody trains


@dataclass(frozen=True, eq=False)
class Ragged:
    """values (P, ...): all sequences, in memory or mapped. starts (n + 1,): where each begins, and the end of the last.

    table  (V, ...) where values (P,) are numbers of its rows, which are what is meant: few different ones, many times.
    """

    values: np.ndarray
    starts: np.ndarray
    table: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self._meant(self.values[self.starts[index] : self.starts[index + 1]])

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.diff(self.starts)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of everything in it."""
        digest = hashlib.sha256()
        for first in range(0, len(self.values), JOINED):
            digest.update(np.ascontiguousarray(self._meant(self.values[first : first + JOINED])).data)
        digest.update(np.ascontiguousarray(self.starts).data)
        return digest.hexdigest()

    def padded(self, rows: np.ndarray, fill: int) -> tuple[Tensor, Tensor]:
        """The sequences `rows` side by side, (B, T, ...) int64 with `fill` after the end of each, and their lengths."""
        sizes = self.sizes[rows]
        places = np.arange(int(sizes.max()) if len(sizes) else 0)
        real = places < sizes[:, None]
        values = self._meant(self.values[(self.starts[rows][:, None] + places)[real]])
        found = np.full((*real.shape, *values.shape[1:]), fill, dtype=np.int64)
        found[real] = values
        return torch.from_numpy(found), torch.from_numpy(sizes.astype(np.int64))

    def cut(self, limit: int) -> Ragged:
        """The same with at most `limit` values of each sequence."""
        keep = np.ones(len(self.values), bool)
        for row in np.flatnonzero(self.sizes > limit).tolist():
            keep[self.starts[row] + limit : self.starts[row + 1]] = False
        starts = np.concatenate([[0], np.cumsum(np.minimum(self.sizes, limit))])
        return Ragged(self.values[keep], starts, self.table)

    def first(self) -> Ragged:
        """The same with the first number of each value alone: of words with their spelling their ids."""
        if self.table is None:
            return self if self.values.ndim == 1 else Ragged(self.values[:, 0], self.starts)
        return Ragged(self.table[:, 0][self.values], self.starts)

    def _meant(self, values: np.ndarray) -> np.ndarray:
        return values if self.table is None else self.table[values]


def ragged(sequences: Iterable[np.ndarray | Sequence[int]], dtype: str = "<i4") -> Ragged:
    """Sequences of whole numbers, laid end to end: in memory, or mapped from a file without a name where many."""
    stops, values, shape = Spool(np.int64), Spool(np.dtype(dtype)), tuple[int, ...]()
    lengths, total = array("q", [0]), 0
    for sequence in sequences:
        one = np.asarray(sequence, dtype=dtype)
        total += len(one)
        lengths.append(total)
        if len(one):
            shape = one.shape[1:]
            values.append(one.reshape(-1))
        if len(lengths) >= JOINED:
            stops.append(np.frombuffer(lengths, np.int64))
            lengths = array("q")
    stops.append(np.frombuffer(lengths, np.int64))
    return Ragged(values.array().reshape(-1, *shape), stops.array())


def in_batches(sizes: Sequence[int], at_once: int = AT_ONCE) -> Iterator[np.ndarray]:
    """Numbers of sequences, joined by length, longest first: what does not fit into memory fails at once."""
    order = np.argsort(-np.asarray(sizes), kind="stable")
    for first in range(0, len(order), at_once):
        yield order[first : first + at_once]
