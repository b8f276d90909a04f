"""The linear model of several labels: each label against its absence, a weight for each n-gram, fitted exactly.

    z_l = w_l . x + b_l        minimise |W|^2 / 2 + C sum_i sum_l log(1 + exp(-s_il z_il)),   s = 1 or -1

    x      how much each n-gram counts in a text (models/gram_scores.py)
    C      how much examples count beside |W|^2

Labels are told each for itself, which is the binary relevance of Boutell et al. 2004; all are solved for at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.fitting.linear import binary
from regard.models.gram_classifier import GramConfig
from regard.models.gram_scores import UNSOLVED, GramScores


@dataclass(frozen=True)
class LinearLabelsConfig(GramConfig, kind="linear_labels"):
    """strength: C. tolerance: of the gradient, by that at zero."""

    strength: float = 10.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check(0 < self.strength < math.inf, f"strength must be positive and finite, found {self.strength}")
        check(0 < self.tolerance < 1, f"tolerance must lie between 0 and 1, found {self.tolerance}")

    def build(self) -> LinearLabels:
        return LinearLabels(self)


class LinearLabels(GramScores):
    """The log-odds of each label."""

    config: LinearLabelsConfig

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        hits = torch.from_numpy(np.asarray(data.rows.hits, np.float64))
        rows = self.learn_rows(data, tell)
        tell("solving", 0.0)
        found = self.solve(binary(rows, hits, self.config.strength), self.config.tolerance)
        if not found["converged"]:
            tell.note(UNSOLVED)
        told = f"{self.n_grams:,} n-grams, {self.config.n_classes:,} labels, {found['steps']} Newton steps"
        return {"told": told, **found}


@register(
    "linear_labels",
    sizes={
        "tiny": {"order": 1, "characters": (2, 3)},
        "small": {},
        "base": {},
        "paper": {"order": 1, "characters": ()},
    },
    paper="Boutell, Luo, Shen, Brown 2004, Learning multi-label scene classification",
    task="multilabel",
)
def linear_labels(
    spec: DataSpec,
    *,
    order: int = 2,
    characters: tuple[int, ...] = (2, 5),
    strength: float = 10.0,
    min_texts: int = 1,
    lower: bool = True,
    tolerance: float = 1e-4,
) -> LinearLabelsConfig:
    """A weight for each n-gram and label, each label fitted against its absence."""
    return LinearLabelsConfig(spec.n_classes, order, characters, min_texts, lower, strength, tolerance)
