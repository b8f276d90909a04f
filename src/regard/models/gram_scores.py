"""Models over n-grams whose answers are sums that stand for themselves: a number, or the log-odds of each label.

    z = W^T x + b        x_f = (1 + log n_f) idf_f, each block of n-grams a vector of length 1

n_f   how often n-gram f occurs in the text        idf_f   1 + log((1 + n) / (1 + d_f)), d_f texts of the n have it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.context import EMPTY, Context
from regard.core.fitted import GivenExamples, Tell
from regard.core.state import State
from regard.fitting.grams import words_of
from regard.fitting.linear import Examples, LinearPoint
from regard.fitting.model import require, require_room
from regard.fitting.newton import minimise
from regard.fitting.sparse import SparseRows
from regard.models.gram_classifier import GramClassifier, GramConfig, concatenated, texts_of

MOST_STEPS = 100
UNSOLVED = f"the solver did not converge in {MOST_STEPS} steps; raise model.tolerance or lower model.strength"


class GramScores(GramClassifier):
    """weights (F, K): W. bias (K,): b. idf (F,)."""

    weights: Tensor
    bias: Tensor
    idf: Tensor

    def __init__(self, config: GramConfig) -> None:
        super().__init__(config)
        self.register_buffer("weights", torch.zeros(0, 0))
        self.register_buffer("bias", torch.zeros(0))
        self.register_buffer("idf", torch.zeros(0))

    def learn_rows(self, data: GivenExamples, tell: Tell) -> SparseRows:
        """Take the n-grams of the training part for the model's own, and give its rows."""
        blocks = self.learn_grams(data.column("text"), tell)
        advice = "raise model.min_texts or lower model.order"
        require_room(self.n_grams, "n-grams", self.config.n_classes, "answers", advice)
        idf = np.concatenate([block.idf() for block in blocks])
        self.take({"weights": torch.zeros(0, 0), "bias": torch.zeros(0), "idf": torch.from_numpy(idf).float()})
        return self.values(blocks)

    def solve(self, of: Examples, tolerance: float) -> dict[str, Any]:
        """Take the weights with the least loss for the model's own; what is to be said of them."""
        found = minimise(LinearPoint.zero(of), tolerance, MOST_STEPS)
        point = found.point
        assert isinstance(point, LinearPoint)
        self.take({"weights": point.weights[:-1].float(), "bias": point.weights[-1].float()})
        return {"steps": found.steps, "gradient": found.gradient, "converged": found.converged}

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """z (B, K), of texts by the numbers of their characters, (B, T)."""
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
            return self.bias.double().expand(len(rows), -1)
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
        require(len(self.bias) == self.weights.shape[1] == self.config.n_classes, "the number of answers")
        self.require_columns(len(self.weights))
        self.require_columns(len(self.idf))
