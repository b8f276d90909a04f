"""Ridge regression over n-grams: one weight for each n-gram of a text, fitted exactly (Hoerl and Kennard 1970).

    y = w . x + b            minimise |w|^2 / 2 + C sum_i (y_i - t_i)^2 / 2

    x      how much each n-gram counts in a text (models/gram_scores.py)
    t_i    the number of example i, in deviations from their mean
    C      how much examples count beside |w|^2

The problem is quadratic, and conjugate gradients within Newton's method solve it to a stated gradient. C is the one of
a few that tells held-out numbers best, unless it is given.
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
from regard.fitting.linear import numbered
from regard.models.gram_classifier import GramConfig
from regard.models.gram_scores import UNSOLVED, GramScores

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
USUAL = 1.0  # where there is nothing to choose by


@dataclass(frozen=True)
class RidgeConfig(GramConfig, kind="ridge"):
    """strength: C; None: the best of a few. tolerance: of the gradient, by that at zero."""

    strength: float | None = None
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        told = self.strength is None or 0 < self.strength < math.inf
        check(told, f"strength must be positive and finite, found {self.strength}")
        check(0 < self.tolerance < 1, f"tolerance must lie between 0 and 1, found {self.tolerance}")

    def build(self) -> Ridge:
        return Ridge(self)


class Ridge(GramScores):
    """One answer: a number."""

    config: RidgeConfig

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        numbers = torch.from_numpy(np.asarray(data.rows.numbers, np.float64))
        rows, tolerance = self.learn_rows(data, tell), self.config.tolerance
        given, losses = self.config.strength, dict[float, float]()
        for place, strength in enumerate(STRENGTHS if given is None else ()):
            self.solve(numbered(rows, numbers, strength), tolerance)
            losses[strength] = settings.judge()
            tell("choosing", (place + 1) / len(STRENGTHS))
            if math.isnan(losses[strength]):
                break
        known = {strength: loss for strength, loss in losses.items() if math.isfinite(loss)}
        chosen = given if given is not None else min(known, key=lambda one: known[one], default=USUAL)
        found = self.solve(numbered(rows, numbers, chosen), tolerance)
        if not found["converged"]:
            tell.note(UNSOLVED)
        told = f"{self.n_grams:,} n-grams, strength {chosen:g}, {found['steps']} Newton steps"
        return {"told": told, "strength": chosen, "losses": {f"{one:g}": loss for one, loss in known.items()}, **found}


@register(
    "ridge",
    sizes={
        "tiny": {"order": 1, "characters": (2, 3)},
        "small": {},
        "base": {},
        "paper": {"order": 1, "characters": ()},
    },
    paper="Hoerl, Kennard 1970, Ridge regression: biased estimation for nonorthogonal problems",
    task="regression",
)
def ridge(
    _spec: DataSpec,
    *,
    order: int = 2,
    characters: tuple[int, ...] = (2, 5),
    strength: float | None = None,
    min_texts: int = 1,
    lower: bool = True,
    tolerance: float = 1e-4,
) -> RidgeConfig:
    """A weight for each n-gram of words and characters, by least squares with L2."""
    return RidgeConfig(1, order, characters, min_texts, lower, strength, tolerance)
