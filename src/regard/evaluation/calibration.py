"""Whether chances are true: of what is said with 80 per cent, are 80 per cent right?

    ECE = sum_b n_b / n |accuracy_b - confidence_b|   over 15 bins of equal width (Naeini et al. 2015; Guo et al. 2017)

The confidence of an answer is the chance of the class that is told. A temperature T brings chances nearer to the truth
and changes no answer (Guo et al. 2017):

    p = softmax(z / T)        T minimises - sum_i log p_i[y_i] over examples that training did not see

T is found by its inverse, in which the loss is convex. Of examples that are all told rightly no finite T is the best;
the true class of each of n examples therefore counts 1 - e, and e = 1 / (n + 2) is shared by all (Platt 1999).

Glossary
z  logits        n_b  answers whose confidence lies in bin b, of n
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

N_BINS = 15
LOWEST, HIGHEST = 0.05, 20.0  # of a temperature
HALVINGS = 60


@dataclass(frozen=True)
class Bin:
    """Answers of about the same confidence. confidence, accuracy: their means."""

    low: float
    high: float
    confidence: float
    accuracy: float
    count: int

    def to_row(self) -> dict[str, object]:
        """For a table of scores."""
        told = {"confidence": self.confidence, "accuracy": self.accuracy, "count": self.count}
        return {"bin": f"{self.low:.2f}-{self.high:.2f}", **told}


def reliability(confidence: Sequence[float] | np.ndarray, right: Sequence[bool] | np.ndarray) -> list[Bin]:
    """The bins that hold answers, from the least sure to the surest; a confidence on an edge is in the lower one."""
    sure, hits = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    place = np.clip(np.ceil(sure * N_BINS).astype(np.int64) - 1, 0, N_BINS - 1)
    counts, sums, good = (np.bincount(place, one, minlength=N_BINS) for one in (np.ones(len(sure)), sure, hits))
    return [
        Bin(b / N_BINS, (b + 1) / N_BINS, float(sums[b] / counts[b]), float(good[b] / counts[b]), int(counts[b]))
        for b in np.flatnonzero(counts).tolist()
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """ECE."""
    n = max(1, sum(one.count for one in bins))
    return sum(one.count / n * abs(one.accuracy - one.confidence) for one in bins)


def tempered(logits: np.ndarray, temperature: float) -> np.ndarray:
    """log softmax(z / T), (n, C)."""
    z = logits / temperature
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def log_loss(logits: np.ndarray, labels: np.ndarray, temperature: float = 1.0) -> float:
    """The mean of -log p of the true class, in nats."""
    return float(-tempered(logits, temperature)[np.arange(len(labels)), labels].mean())


def best_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """T of logits (n, C) and true classes (n,), within LOWEST and HIGHEST."""
    e = 1 / (len(labels) + 2)
    wanted = (1 - e) * logits[np.arange(len(labels)), labels] + e * logits.mean(-1)

    def slope(inverse: float) -> float:
        """By 1 / T: what is told of z on average, less what is true; it rises with 1 / T."""
        told = (np.exp(tempered(logits, 1 / inverse)) * logits).sum(-1)
        return float((told - wanted).sum())

    low, high = 1 / HIGHEST, 1 / LOWEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 2 / (low + high)
