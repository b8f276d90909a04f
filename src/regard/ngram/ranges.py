"""Ranges of rows: sorted tables cut at the same keys, so that what lies between two cuts is merged by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from regard.storage.arrays import SLICE

Bounds = list[tuple[int, int]]
Columns = Sequence[np.ndarray]


def ranges(tables: Sequence[Columns], vocab_size: int, rows: int) -> list[Bounds]:
    """Ranges of rows that hold about `rows` of them in all tables together, as bounds in each table.

    Ranges are of first tokens; rows that begin with one token and are more are cut by the token after it, and so on.
    """
    return _cut([(0, len(columns[0])) for columns in tables], tables, vocab_size, rows, 0)


def _cut(bounds: Bounds, tables: Sequence[Columns], vocab_size: int, rows: int, place: int) -> list[Bounds]:
    """Rows of equal tokens before `place`, cut by the token there."""
    if place == len(tables[0]) or sum(last - first for first, last in bounds) <= rows:
        return [bounds]
    columns = [table[place] for table in tables]
    ends = np.zeros(vocab_size + 1, np.int64)
    for column, (first, last) in zip(columns, bounds, strict=True):
        for start in range(first, last, SLICE):
            ends += np.bincount(column[start : min(start + SLICE, last)], minlength=len(ends))
    np.cumsum(ends, out=ends)
    cuts, taken = [0], 0
    while taken < ends[-1]:
        cut = max(cuts[-1] + 1, int(np.searchsorted(ends, taken + rows, side="right")))
        cuts.append(cut)
        taken = int(ends[cut - 1])
    edges = [[_edge(column, cut, *bound) for cut in cuts] for column, bound in zip(columns, bounds, strict=True)]
    found = list[Bounds]()
    for i, (low, high) in enumerate(pairwise(cuts)):
        here = [(edge[i], edge[i + 1]) for edge in edges]
        found += _cut(here, tables, vocab_size, rows, place + 1) if high == low + 1 else [here]
    return found


def _edge(column: np.ndarray, token: int, low: int, high: int) -> int:
    """Where rows with `token`, or a later one, begin between two. Of a file on disk few numbers are read."""
    while low < high:
        middle = (low + high) // 2
        if column[middle : middle + 1][0] < token:
            low = middle + 1
        else:
            high = middle
    return low
