"""The weights of a linear classifier: by one loss or as the mean of two, of a given strength or the best.

    z = z_logistic + a z_hinge        a: so that both are as large on the texts of training, on average

Each is a weight for each feature, and so is their sum: what one of the two makes of noise the other does not.

A strength that nobody gives is found by cross-validation within the training part: of three parts each is answered by
what the other two teach, at every strength, and the one with most right answers is taken; copies of a text are in one
part. Of the hinge the strength is
a tenth of that of the logistic loss, whose slope falls off where an answer is right. The scale R of naive Bayes is
counted anew for each part, since it knows the classes of the texts that it is counted from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.fitted import Tell
from regard.fitting.linear import Examples, LinearPoint, LossName, examples
from regard.fitting.newton import Minimum, minimise
from regard.fitting.sparse import SparseRows

Losses = Literal["logistic", "hinge", "both"]
DEFAULT, STRENGTHS = 10.0, (3.0, 10.0, 30.0, 100.0)
HINGE = 0.1  # its strength, by that of the logistic loss
FOLDS, FEWEST = 3, 12  # parts, and different texts below which nothing is sought
ROUGH = 1e-2  # the tolerance of a solution that is only compared
TINY = 1e-12
MOST_SOUGHT = 1 << 26  # entries times answers, beyond which a search would take minutes


@dataclass(frozen=True)
class Solving:
    """loss, tolerance, most: of the solver. strength: C, None to find it. ratios: features have the scale R."""

    n_classes: int
    loss: Losses
    strength: float | None
    tolerance: float
    most: int
    ratios: bool = True
    class_weights: Sequence[float] | None = None


@dataclass(frozen=True, eq=False)
class Solved:
    """weights (F, K), R within; bias (K,); minima: of each loss. tried: the part that was right, by strength."""

    weights: Tensor
    bias: Tensor
    strength: float
    minima: tuple[Minimum, ...]
    tried: dict[str, float]

    @property
    def converged(self) -> bool:
        return all(one.converged for one in self.minima)

    @property
    def gradient(self) -> float:
        return max(one.gradient for one in self.minima)

    @property
    def steps(self) -> int:
        return sum(one.steps for one in self.minima)

    @property
    def products(self) -> int:
        return sum(one.products for one in self.minima)


def solve(rows: SparseRows, labels: np.ndarray, how: Solving, tell: Tell) -> Solved:
    """The weights for features and the class of each row."""
    tried = _tried(rows, labels, how, tell) if how.strength is None else {}
    # Of equal ones the one that is nearest to the default.
    nearest = sorted(tried, key=lambda one: abs(math.log(one / DEFAULT)))
    best = how.strength or max(nearest, key=lambda one: tried[one], default=DEFAULT)
    found = _solve(_examples(rows, labels, how), how, best, lambda share: tell("solving", share))
    return replace(found, tried={f"{one:g}": right for one, right in tried.items()})


def _tried(rows: SparseRows, labels: np.ndarray, how: Solving, tell: Tell) -> dict[float, float]:
    """The part of texts that is right at each strength; nothing where texts are too few, or a search too dear."""
    width = 1 if how.n_classes == 2 else how.n_classes
    if len(rows) < FEWEST or how.n_classes < 2 or len(rows.values) * width > MOST_SOUGHT:
        return {}
    different, right = _different(rows), dict.fromkeys(STRENGTHS, 0)
    if different.max() + 1 < FEWEST:
        return {}
    part = different % FOLDS
    # Of both losses the hinge alone is asked: it is solved for sooner, and the strength matters more to it.
    rough = replace(how, tolerance=ROUGH, loss="hinge" if how.loss == "both" else how.loss)
    weak = HINGE if how.loss == "both" else 1.0
    for fold in range(FOLDS):
        inside, outside = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
        asked, expected = rows.taken(outside).matrix(), labels[outside]
        of = _examples(rows.taken(inside), labels[inside], how)
        for number, strength in enumerate(STRENGTHS):
            tell("choosing a strength", (fold * len(STRENGTHS) + number) / (FOLDS * len(STRENGTHS)))
            found = _solve(of, rough, strength * weak, lambda _: None)
            z = (asked @ found.weights + found.bias).numpy()
            told = (z[:, 0] > 0) if how.n_classes == 2 else z.argmax(1)
            right[strength] += int((told == expected).sum())
    return {strength: count / len(rows) for strength, count in right.items()}


def _different(rows: SparseRows) -> np.ndarray:
    """The number of each row among those that differ, (n,): a text and its copies are never in two parts."""
    seen: dict[bytes, int] = {}
    bounds = zip(rows.starts[:-1].tolist(), rows.starts[1:].tolist(), strict=True)
    keys = (rows.columns[first:stop].tobytes() + rows.values[first:stop].tobytes() for first, stop in bounds)
    return np.fromiter((seen.setdefault(key, len(seen)) for key in keys), np.int64, len(rows))


def _examples(rows: SparseRows, labels: np.ndarray, how: Solving) -> Examples:
    """Ready for a solver, of strength 1."""
    scale = log_count_ratios(rows, labels, how.n_classes) if how.ratios else None
    return examples(rows, torch.from_numpy(labels), how.n_classes, "logistic", 1.0, scale, how.class_weights)


def _solve(of: Examples, how: Solving, strength: float, tell: Callable[[float], None]) -> Solved:
    losses: tuple[LossName, ...] = get_args(LossName) if how.loss == "both" else (how.loss,)
    minima = list[Minimum]()
    for number, loss in enumerate(losses):
        own = strength * HINGE if how.loss == "both" and loss == "hinge" else strength
        start = LinearPoint.zero(replace(of, loss=loss, strength=of.strength * own))
        found = minimise(start, how.tolerance, how.most, lambda s, a=number: tell((a + s) / len(losses)))
        minima.append(found)
    points = [one.point for one in minima if isinstance(one.point, LinearPoint)]
    first = _size(points[0].logits)
    others = sum(point.weights * (first / max(_size(point.logits), TINY)) for point in points[1:])
    weights = (points[0].weights + others) / len(points)
    inner = weights[:-1] if of.scale is None else weights[:-1] * of.scale
    return Solved(inner, weights[-1], strength, tuple(minima), {})


def _size(z: Tensor) -> float:
    """How large scores (n, K) are on average, beyond what all classes share."""
    return float((z - z.mean(1, keepdim=True) if z.shape[1] > 1 else z).abs().mean())


def log_count_ratios(rows: SparseRows, labels: np.ndarray, n_classes: int) -> Tensor:
    """R (F, K): log(p / |p|) - log(q / |q|), p the texts of a class with each n-gram and q those of the others, + 1."""
    hits = F.one_hot(torch.from_numpy(labels), n_classes).double()
    hits = hits[:, 1:] if n_classes == 2 else hits
    occurs = rows.with_values(np.ones(len(rows.values))).transposed().matrix()
    inside, everywhere = occurs @ hits, torch.from_numpy(rows.frequencies().astype(np.float64))[:, None]
    p, q = 1 + inside, 1 + everywhere - inside
    return (p / p.sum(0)).log() - (q / q.sum(0)).log()
