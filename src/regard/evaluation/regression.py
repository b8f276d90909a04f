"""Numbers against the true ones.

    mae  = mean |e|        rmse = sqrt(mean e^2)        r2 = 1 - sum e^2 / sum (t - mean t)^2,   e = told - t

    spearman   the correlation of ranks, equal numbers sharing the mean of theirs (Spearman 1904)

r2 is 0 where only the mean of the true numbers is told, and below where less; of true numbers that are all the same it
is 0. A correlation with numbers that are all the same is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.errors import DataError


def regression_scores(truth: Sequence[float] | np.ndarray, told: Sequence[float] | np.ndarray) -> dict[str, float]:
    """mae, rmse, r2 and spearman of numbers (n,)."""
    true, said = np.asarray(truth, np.float64), np.asarray(told, np.float64)
    if true.shape != said.shape or true.ndim != 1:
        raise DataError(f"{len(said)} numbers are told for {len(true)} true ones; each example needs one")
    if not len(true):
        raise DataError("there is no number to score: the list of examples is empty")
    missed = said - true
    spread = float(np.square(true - true.mean()).sum())
    return {
        "mae": float(np.abs(missed).mean()),
        "rmse": float(np.sqrt(np.square(missed).mean())),
        "r2": 1 - float(np.square(missed).sum()) / spread if spread > 0 else 0.0,
        "spearman": _correlation(ranks(true), ranks(said)),
    }


def ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value from 1 on, equal ones sharing their mean.

    >>> ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[number]


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt(np.square(a).sum() * np.square(b).sum()))
    return float((a * b).sum() / size) if size > 0 else 0.0
