"""Windows of a series as rows: a past to read, a horizon with what is known ahead, and the values to forecast."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

from regard.data.batch import Batch


@dataclass(frozen=True, eq=False)
class SeriesRows:
    """values (n,): the target, scaled. known (n, K): what is known ahead, scaled, the calendar last.

    origins (m,): the first positions of the horizons. history, horizon: steps before and from each of them on.
    """

    values: np.ndarray
    known: np.ndarray
    origins: np.ndarray
    history: int
    horizon: int

    @property
    def sizes(self) -> np.ndarray:
        return np.full(len(self.origins), self.history + self.horizon)

    @property
    def n_targets(self) -> int:
        return len(self.origins) * self.horizon

    @property
    def hash(self) -> str:
        digest = hashlib.sha256(f"{self.history} {self.horizon}".encode())
        for part in (self.values, self.known, self.origins):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        origins = self.origins[rows]
        before = origins[:, None] + np.arange(-self.history, 0)
        after = origins[:, None] + np.arange(self.horizon)
        source = np.concatenate([self.values[before][..., None], self.known[before]], -1)
        return Batch(
            torch.from_numpy(self.known[after].astype(np.float32)),
            torch.from_numpy(self.values[after].astype(np.float32)),
            torch.full((len(rows),), self.horizon),
            numbers.tolist(),
            source=torch.from_numpy(source.astype(np.float32)),
        )
