"""Coding: many numbers of few different values as places in a table of the distinct ones, in the fewest bytes.

Nothing here needs torch but `search`, which is for the process that has it anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.core.workers import Workers
from regard.storage.arrays import Spool

Search = Callable[[np.ndarray, np.ndarray], np.ndarray]


def search(table: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Where numbers have their place among those of a sorted table. torch searches with all cores."""
    import torch

    return torch.searchsorted(torch.from_numpy(table), torch.from_numpy(np.ascontiguousarray(numbers))).numpy()


def coded(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes and the table of distinct numbers."""
    table = np.unique(numbers)
    return narrow(search(table, numbers), len(table)), table


def coded_in_parts(
    make: Callable[[Any], np.ndarray],
    parts: Sequence[Any],
    workers: Workers,
    spool: Callable[[np.dtype], Spool],
) -> tuple[np.ndarray, np.ndarray]:
    """The same of an array of which `make` gives the parts, one at least, twice."""
    table = np.unique(np.concatenate(list(workers.map(_Distinct(make), parts))))
    codes = spool(narrow(np.zeros(0, np.int64), len(table)).dtype)
    for part in workers.map(_Coder(make, table, search if workers.is_here else np.searchsorted), parts):
        codes.append(part)
    return codes.array(), table


@dataclass(frozen=True)
class _Distinct:
    """The distinct numbers of a part."""

    make: Callable[[Any], np.ndarray]

    def __call__(self, part: Any) -> np.ndarray:
        return np.unique(self.make(part))


@dataclass(frozen=True)
class _Coder:
    """The codes of a part."""

    make: Callable[[Any], np.ndarray]
    table: np.ndarray
    search: Search

    def __call__(self, part: Any) -> np.ndarray:
        return narrow(self.search(self.table, self.make(part)), len(self.table))


def narrow(codes: np.ndarray, size: int) -> np.ndarray:
    """Codes below `size` in the fewest bytes. torch knows no unsigned 16 bits here, so the upper half is negative."""
    return codes.astype(np.uint8 if size <= 1 << 8 else np.int16 if size <= 1 << 16 else np.int32)
