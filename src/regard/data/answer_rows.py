"""Rows of texts of which something else than a class is told: a number, or several labels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

from regard.data.batch import Batch
from regard.data.ragged import Ragged


@dataclass(frozen=True, eq=False)
class NumberRows:
    """text: ids, each with its `<eos>`. numbers (n,): what is told of each, in the terms of a model."""

    text: Ragged
    numbers: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return self.text.sizes

    @property
    def n_targets(self) -> int:
        return self.numbers.size

    @property
    def hash(self) -> str:
        return self.text.hash + hashlib.sha256(np.ascontiguousarray(self.numbers).data).hexdigest()

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        tokens, lengths = self.text.padded(rows, 0)
        return Batch(tokens, torch.from_numpy(self.numbers[rows].astype(np.float32)), lengths, numbers.tolist())


@dataclass(frozen=True, eq=False)
class LabelSetRows:
    """text: ids, each with its `<eos>`. labels: the numbers of those of each, of `n_labels`."""

    text: Ragged
    labels: Ragged
    n_labels: int

    @property
    def sizes(self) -> np.ndarray:
        return self.text.sizes

    @property
    def n_targets(self) -> int:
        return len(self.labels) * self.n_labels

    @property
    def hash(self) -> str:
        return self.text.hash + self.labels.hash

    @property
    def hits(self) -> np.ndarray:
        """Which labels each row has, (n, L) bool."""
        found = np.zeros((len(self.labels), self.n_labels), bool)
        found[np.repeat(np.arange(len(self.labels)), self.labels.sizes), self.labels.values] = True
        return found

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        tokens, lengths = self.text.padded(rows, 0)
        targets = torch.zeros(len(rows), self.n_labels)
        for place, row in enumerate(rows.tolist()):
            targets[place, self.labels[row].astype(np.int64)] = 1.0
        return Batch(tokens, targets, lengths, numbers.tolist())
