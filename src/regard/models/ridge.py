"""Ridge regression over n-grams: one weight for each n-gram of a text, fitted exactly (Hoerl and Kennard 1970).

    y = w . x + b            minimise |w|^2 / 2 + C sum_i (y_i - t_i)^2 / 2

    x      how much each n-gram counts in a text: (1 + log n_f) idf_f, each block of n-grams a vector of length 1
    t_i    the number of example i, in deviations from their mean
    C      how much examples count beside |w|^2

The problem is quadratic, and conjugate gradients within Newton's method solve it to a stated gradient. C is the one of
a few that tells held-out numbers best, unless it is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.core.state import State
from regard.fitting.grams import words_of
from regard.fitting.linear import LinearPoint, numbered
from regard.fitting.model import require
from regard.fitting.newton import minimise
from regard.fitting.sparse import SparseRows
from regard.models.gram_classifier import GramClassifier, GramConfig, concatenated, texts_of

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
USUAL = 1.0  # where there is nothing to choose by
MOST_STEPS = 100


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


class Ridge(GramClassifier):
    """weights (F, 1): w. bias (1,): b. idf (F,)."""

    config: RidgeConfig
    weights: Tensor
    bias: Tensor
    idf: Tensor

    def __init__(self, config: RidgeConfig) -> None:
        super().__init__(config)
        self.register_buffer("weights", torch.zeros(0, 0))
        self.register_buffer("bias", torch.zeros(0))
        self.register_buffer("idf", torch.zeros(0))

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        numbers = torch.from_numpy(np.asarray(data.rows.numbers, np.float64))
        blocks = self.learn_grams(data.column("text"), tell)
        idf = np.concatenate([block.idf() for block in blocks])
        self.take({"weights": torch.zeros(0, 0), "bias": torch.zeros(0), "idf": torch.from_numpy(idf).float()})
        rows = self.values(blocks)
        given, losses = self.config.strength, dict[float, float]()
        for place, strength in enumerate(STRENGTHS if given is None else ()):
            self._solve(rows, numbers, strength)
            losses[strength] = settings.judge()
            tell("choosing", (place + 1) / len(STRENGTHS))
            if math.isnan(losses[strength]):
                break
        known = {strength: loss for strength, loss in losses.items() if math.isfinite(loss)}
        chosen = given if given is not None else min(known, key=lambda one: known[one], default=USUAL)
        found = self._solve(rows, numbers, chosen)
        if not found["converged"]:
            tell.note(
                f"the solver did not converge in {MOST_STEPS} steps; raise model.tolerance or lower model.strength"
            )
        told = f"{self.n_grams:,} n-grams, strength {chosen:g}, {found['steps']} Newton steps"
        return {"told": told, "strength": chosen, "losses": {f"{one:g}": loss for one, loss in known.items()}, **found}

    def _solve(self, rows: SparseRows, numbers: Tensor, strength: float) -> dict[str, Any]:
        found = minimise(LinearPoint.zero(numbered(rows, numbers, strength)), self.config.tolerance, MOST_STEPS)
        point = found.point
        assert isinstance(point, LinearPoint)
        self.take({"weights": point.weights[:-1].float(), "bias": point.weights[-1].float()})
        return {"steps": found.steps, "gradient": found.gradient, "converged": found.converged}

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """(B, 1), of texts by the numbers of their characters, (B, T)."""
        rows = self.values(self._blocks(words_of(texts_of(tokens, context.lengths), self.config.lower)))
        return self.scores(rows).to(self.like.dtype), None

    def values(self, blocks: Sequence[SparseRows]) -> SparseRows:
        idf, first, made = self.idf.cpu().numpy().astype(np.float64), 0, []
        for block in blocks:
            made.append(block.of_length_one((1 + np.log(block.values)) * idf[first + block.columns]))
            first += block.width
        return concatenated(made)

    def scores(self, rows: SparseRows) -> Tensor:
        device = self.weights.device
        if not len(rows.columns):
            return self.bias.double().expand(len(rows), 1)
        columns, starts, values = (
            torch.from_numpy(part).to(device) for part in (rows.columns, rows.starts[:-1], rows.values)
        )
        used, places = columns.unique(return_inverse=True)
        told = F.embedding_bag(places, self.weights[used].double(), starts, mode="sum", per_sample_weights=values)
        return told + self.bias

    def weights_of(self, columns: np.ndarray) -> np.ndarray:
        return self.weights[torch.from_numpy(columns).to(self.weights.device)].double().cpu().numpy()

    @property
    def offsets(self) -> np.ndarray:
        return self.bias.double().cpu().numpy()

    def settle(self) -> None:
        super().settle()
        if self.weights.is_meta or not len(self.bias):
            return
        require(len(self.bias) == self.weights.shape[1] == 1, "the number of answers")
        self.require_columns(len(self.weights))
        self.require_columns(len(self.idf))


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
