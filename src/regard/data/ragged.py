"""Ragged: many sequences of unequal length, laid end to end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

AT_ONCE = 64  # sequences that are read side by side where nobody trains


@dataclass(frozen=True, eq=False)
class Ragged:
    """values (P, ...): all sequences. starts (n + 1,): where each begins, and the end of the last."""

    values: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.values[self.starts[index] : self.starts[index + 1]]

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.diff(self.starts)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of everything in it."""
        digest = hashlib.sha256(np.ascontiguousarray(self.values).data)
        digest.update(np.ascontiguousarray(self.starts).data)
        return digest.hexdigest()

    def padded(self, rows: np.ndarray, fill: int) -> tuple[Tensor, Tensor]:
        """The sequences `rows` side by side, (B, T, ...) int64 with `fill` after the end of each, and their lengths."""
        sizes = self.sizes[rows]
        places = np.arange(int(sizes.max()) if len(sizes) else 0)
        real = places < sizes[:, None]
        found = np.full((*real.shape, *self.values.shape[1:]), fill, dtype=np.int64)
        found[real] = self.values[(self.starts[rows][:, None] + places)[real]]
        return torch.from_numpy(found), torch.from_numpy(sizes.astype(np.int64))


def ragged(sequences: Iterable[np.ndarray], dtype: str = "<i4") -> Ragged:
    """Sequences of whole numbers, laid end to end."""
    parts = [np.asarray(sequence, dtype=dtype) for sequence in sequences]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Ragged(np.concatenate(parts) if parts else np.empty(0, dtype), starts)


def in_batches(sizes: Sequence[int], at_once: int = AT_ONCE) -> Iterator[np.ndarray]:
    """Numbers of sequences, joined by length, longest first: what does not fit into memory fails at once."""
    order = np.argsort(-np.asarray(sizes), kind="stable")
    for first in range(0, len(order), at_once):
        yield order[first : first + at_once]
