"""The regularised loss of a linear model over sparse rows, as `regard.fitting.newton` asks for it.

f(W, b) = |W|^2 / 2 + sum_i C_i loss(z_i, y_i)      z_i = (R * W)^T x_i + b

x_i   the features of example i, y_i its class
R     a scale for each feature and class, 1 where there is none: w is what is kept small, and not R w
C_i   how much example i counts beside |W|^2: a strength, times the weight of its class where there are such; b is free

logistic   -log softmax(z_i)[y_i]; of two classes log(1 + exp(-s_i z_i)), s_i = 1 or -1, with one z
hinge      sum_c max(0, 1 - s_ic z_ic)^2, each class against the others
binary     sum_c log(1 + exp(-s_ic z_ic)), each label against its absence
squared    (z_i - y_i)^2 / 2, of a number y_i
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.fitting.sparse import SparseRows

LossName = Literal["logistic", "hinge"]


@dataclass(frozen=True, eq=False)
class Examples:
    """rows (n, F) and its transpose; signs (n, K): 1 at the class of each, -1 elsewhere; of two classes K = 1.

    scale     R (F, K), or None.
    strength  C_i (n, 1).
    """

    rows: Tensor
    columns: Tensor
    signs: Tensor
    labels: Tensor
    scale: Tensor | None
    loss: LossName | Literal["squared", "binary"]
    strength: Tensor


def examples(
    features: SparseRows,
    labels: Tensor,
    n_classes: int,
    loss: LossName,
    strength: float,
    scale: Tensor | None = None,
    weights: Sequence[float] | None = None,
) -> Examples:
    """Features and classes, ready for a solver. weights: how much examples of each class count; None: the same."""
    hits = F.one_hot(labels, n_classes).double()
    signs = 2 * (hits[:, 1:] if n_classes == 2 else hits) - 1
    of_class = torch.ones(n_classes) if weights is None else torch.tensor(weights)
    each = strength * of_class.double()[labels, None]
    return Examples(features.matrix(), features.transposed().matrix(), signs, labels, scale, loss, each)


def numbered(features: SparseRows, numbers: Tensor, strength: float) -> Examples:
    """Features and a number (n,) for each row, ready for a solver: they stand in the place of signs."""
    each = torch.full((len(features), 1), strength, dtype=torch.float64)
    nothing = torch.zeros(len(features), dtype=torch.long)
    rows, columns = features.matrix(), features.transposed().matrix()
    return Examples(rows, columns, numbers.double()[:, None], nothing, None, "squared", each)


def binary(features: SparseRows, hits: Tensor, strength: float) -> Examples:
    """Features and which of several labels (n, K) each row has, ready for a solver."""
    each = torch.full((len(features), 1), strength, dtype=torch.float64)
    nothing = torch.zeros(len(features), dtype=torch.long)
    rows, columns = features.matrix(), features.transposed().matrix()
    return Examples(rows, columns, 2 * hits.double() - 1, nothing, None, "binary", each)


@dataclass(frozen=True, eq=False)
class LinearPoint:
    """weights (F + 1, K), b last; logits (n, K), z."""

    of: Examples
    weights: Tensor
    logits: Tensor

    @classmethod
    def zero(cls, of: Examples) -> LinearPoint:
        return cls(
            of, torch.zeros(of.rows.shape[1] + 1, of.signs.shape[1], dtype=torch.float64), torch.zeros_like(of.signs)
        )

    def value(self) -> float:
        return float(0.5 * self.weights[:-1].square().sum() + (self.of.strength * self._losses).sum())

    def gradient(self) -> Tensor:
        return self._gradient

    @cached_property
    def _gradient(self) -> Tensor:
        g = self._back(self.of.strength * self._slopes)
        g[:-1] += self.weights[:-1]
        return g

    def curvature(self, v: Tensor) -> Tensor:
        found = self._back(self.of.strength * self._bend(self._forward(v)))
        found[:-1] += v[:-1]
        return found

    def along(self, direction: Tensor) -> Callable[[float], LinearPoint]:
        change = self._forward(direction)
        return lambda a: LinearPoint(self.of, self.weights + a * direction, self.logits + a * change)

    def _forward(self, v: Tensor) -> Tensor:
        weights = v[:-1] if self.of.scale is None else v[:-1] * self.of.scale
        return self.of.rows @ weights + v[-1]

    def _back(self, slopes: Tensor) -> Tensor:
        found = self.of.columns @ slopes
        return torch.cat([found if self.of.scale is None else found * self.of.scale, slopes.sum(0, keepdim=True)])

    @property
    def _multinomial(self) -> bool:
        return self.of.loss == "logistic" and self.of.signs.shape[1] > 1

    @cached_property
    def _losses(self) -> Tensor:
        if self._multinomial:
            return F.cross_entropy(self.logits, self.of.labels, reduction="none")[:, None]
        if self.of.loss == "squared":
            return (self.logits - self.of.signs).square() / 2
        margins = self.of.signs * self.logits
        return (1 - margins).clamp_min(0).square() if self.of.loss == "hinge" else F.softplus(-margins, threshold=40)

    @cached_property
    def _chances(self) -> Tensor:
        """softmax(z), or of two classes and of labels the chance of the wrong one."""
        return self.logits.softmax(-1) if self._multinomial else torch.sigmoid(-self.of.signs * self.logits)

    @cached_property
    def _slopes(self) -> Tensor:
        """d loss / d z."""
        if self._multinomial:
            return self._chances - (self.of.signs + 1) / 2
        if self.of.loss == "squared":
            return self.logits - self.of.signs
        if self.of.loss != "hinge":
            return -self.of.signs * self._chances
        return -2 * self.of.signs * (1 - self.of.signs * self.logits).clamp_min(0)

    def _bend(self, v: Tensor) -> Tensor:
        """d^2 loss / d z^2 times v."""
        if self._multinomial:
            weighted = self._chances * v
            return weighted - self._chances * weighted.sum(-1, keepdim=True)
        if self.of.loss == "squared":
            return v
        if self.of.loss != "hinge":
            return self._chances * (1 - self._chances) * v
        return 2 * (self.of.signs * self.logits < 1) * v
