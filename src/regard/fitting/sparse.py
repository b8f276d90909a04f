"""Sparse rows: of every example the few columns that are not zero.

Products with dense matrices are torch's, over rows (CSR) and over columns (the CSR of the transpose), so that both
directions of a solver go through memory in order and always sum in the same one.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regard.fitting.spans import places

AT_ONCE = 1 << 22  # entries that are sorted together


@dataclass(frozen=True, eq=False)
class SparseRows:
    """columns, values (P,): the entries of all rows, end to end. starts (n + 1,): where each row begins.

    width  how many columns there are.
    """

    columns: np.ndarray
    values: np.ndarray
    starts: np.ndarray
    width: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.starts)

    @property
    def row_of(self) -> np.ndarray:
        """The row of each entry, (P,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def with_values(self, values: np.ndarray) -> SparseRows:
        return replace(self, values=values)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of `values` (P,) over each row, (n,)."""
        return np.bincount(self.row_of, values, minlength=len(self))

    def frequencies(self) -> np.ndarray:
        """In how many rows each column occurs."""
        return np.bincount(self.columns, minlength=self.width)

    def idf(self) -> np.ndarray:
        """1 + log((1 + n) / (1 + d)) of each column, which occurs in d of the n rows."""
        return np.log((1 + len(self)) / (1 + self.frequencies())) + 1

    def of_length_one(self, values: np.ndarray) -> SparseRows:
        """With `values` (P,), each row brought to a length of 1."""
        return self.with_values(values / np.sqrt(self.sums(values * values))[self.row_of])

    def taken(self, rows: np.ndarray) -> SparseRows:
        """Some of the rows, by number."""
        sizes = self.sizes[rows]
        entries = places(self.starts[rows], sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return SparseRows(self.columns[entries], self.values[entries], starts, self.width)

    def kept(self, columns: np.ndarray) -> SparseRows:
        """The rows with the columns that are True in `columns` (width,), numbered anew."""
        numbers = np.cumsum(columns) - 1
        stays = columns[self.columns]
        starts = np.concatenate([[0], np.cumsum(stays)])[self.starts]
        return SparseRows(numbers[self.columns[stays]], self.values[stays], starts, int(columns.sum()))

    def matrix(self) -> Tensor:
        """The rows as a matrix of torch, float64."""
        values = torch.from_numpy(np.asarray(self.values, np.float64))
        parts = (torch.from_numpy(self.starts), torch.from_numpy(np.asarray(self.columns, np.int64)), values)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR", UserWarning)  # torch calls the layout new
            return torch.sparse_csr_tensor(*parts, (len(self), self.width), check_invariants=False)

    def transposed(self) -> SparseRows:
        """The columns as rows."""
        order = np.argsort(self.columns, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.frequencies())])
        return SparseRows(self.row_of[order], self.values[order], starts, len(self))


def summed(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, n_rows: int, width: int) -> SparseRows:
    """The sum of the weights of each pair (row, column); rows do not fall."""
    found_rows, found_columns, found_values = [], [], []
    for first, last in _spans(rows):
        keys = rows[first:last] * np.int64(max(1, width)) + columns[first:last]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        row, column = np.divmod(keys[begins], max(1, width))
        found_rows.append(row)
        found_columns.append(column)
        found_values.append(np.add.reduceat(weights[first:last][order], begins))
    row = np.concatenate(found_rows) if found_rows else np.zeros(0, np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows))])
    columns = np.concatenate(found_columns) if found_columns else np.zeros(0, np.int64)
    values = np.concatenate(found_values) if found_values else np.zeros(0)
    return SparseRows(columns, values, starts, width)


def _spans(rows: np.ndarray) -> Sequence[tuple[int, int]]:
    """Parts of the entries that hold whole rows, each of about as many as are sorted at once."""
    bounds = [0]
    while bounds[-1] < len(rows):
        last = min(bounds[-1] + AT_ONCE, len(rows))
        bounds.append(int(np.searchsorted(rows, rows[last - 1], side="right")))
    return list(itertools.pairwise(bounds))


def side_by_side(parts: Sequence[SparseRows]) -> SparseRows:
    """The same rows of several tables, the columns of one after those of the other."""
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0, *(part.width for part in parts)])
    rows = np.concatenate([part.row_of for part in parts])
    order = np.argsort(rows, kind="stable")
    columns = np.concatenate([part.columns + first for part, first in zip(parts, offsets, strict=False)])
    values = np.concatenate([part.values for part in parts])
    starts = np.sum([part.starts for part in parts], axis=0)
    return SparseRows(columns[order], values[order], starts, int(offsets[-1]))
