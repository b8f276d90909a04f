"""The linear classifier over n-grams: one weight for each n-gram and class, fitted exactly (Wang and Manning 2012).

    z = W^T x + b            minimise |V|^2 / 2 + C sum_i loss(z_i, y_i),   W = R * V

    x      how much each n-gram counts in a text, see `weights`
    V, b   what is fitted; R a scale for each n-gram and class, 1 where there is none
    y_i    the class of example i, C how much examples count beside |V|^2, each times the weight of its class if any
    loss   logistic: -log softmax(z)[y]; hinge: the squared distance to a margin of 1, each class against the others;
           both: the mean of the weights of the two (regard/fitting/classes.py)

weights
    tfidf   x_f = (1 + log n_f) (1 + log((1 + n) / (1 + d_f))), and R = 1; n_f: how often f occurs in the text, d_f: in
            how many of the n texts of training
    nb      x_f = 1 where f occurs, and R_fc the log-count ratio of naive Bayes: the log of in how many texts of class c
            f occurs, by that sum over all n-grams, over the same for the other classes, each count one more

Of both kinds each block of n-grams, those of words and those of characters, is then a vector of length 1, so that long
texts do not count for more than short ones.

The problem is convex, and the solver is Newton's method to a stated gradient (regard/fitting/newton.py): there is no
learning rate, no chance, and the same data gives the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.fitting.classes import Losses, Solved, Solving, solve
from regard.fitting.model import require, require_room
from regard.fitting.sparse import SparseRows
from regard.models.gram_classifier import GramClassifier, GramConfig, concatenated, labels_of

WeightsName = Literal["tfidf", "nb"]


@dataclass(frozen=True)
class LinearConfig(GramConfig, kind="linear"):
    """weights, loss: as above. tolerance: of the gradient, by that at zero. max_steps: of the solver.

    strength  C; None: found by cross-validation within the training part (regard/fitting/classes.py).
    """

    weights: WeightsName = "nb"
    loss: Losses = "logistic"
    strength: float | None = 10.0
    tolerance: float = 1e-4
    max_steps: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.strength is None or 0 < self.strength < math.inf
        check(known, f"strength must be positive and finite, found {self.strength}")
        check(0 < self.tolerance < 1, f"tolerance must lie between 0 and 1, found {self.tolerance}")
        check(self.max_steps >= 1, f"max_steps must be 1 or more, found {self.max_steps}")

    def build(self) -> LinearClassifier:
        return LinearClassifier(self)


class LinearClassifier(GramClassifier):
    """weights (F, K): W. bias (K,): b. idf (F,). Of two classes K is 1: z of the second, and its opposite."""

    config: LinearConfig
    weighs_classes = True
    weights: Tensor
    bias: Tensor
    idf: Tensor

    def __init__(self, config: LinearConfig) -> None:
        super().__init__(config)
        self.register_buffer("weights", torch.zeros(0, 0))
        self.register_buffer("bias", torch.zeros(0))
        self.register_buffer("idf", torch.zeros(0))

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        config, labels = self.config, labels_of(data)
        blocks = self.learn_grams(data.column("text"), tell)
        advice = "raise model.min_texts, lower model.order, or take naive_bayes"
        require_room(self.n_grams, "n-grams", config.n_classes, "classes", advice)
        idf = np.concatenate([block.idf() for block in blocks])
        self.take({"weights": torch.zeros(0, 0), "bias": torch.zeros(0), "idf": torch.from_numpy(idf).float()})
        how = Solving(
            config.n_classes, config.loss, config.strength, config.tolerance, config.max_steps,
            config.weights == "nb", settings.class_weights,
        )  # fmt: skip
        found = solve(self.values(blocks), labels, how, tell)
        self.take({"weights": found.weights.float(), "bias": found.bias.float()})
        if not found.converged:
            tell.note(_not_there(found, config))
        strength = f", strength {found.strength:g}" + (" by cross-validation" if found.tried else "")
        return {
            "told": f"{self.n_grams:,} n-grams, {config.n_classes:,} classes, {found.steps} Newton steps{strength}",
            "steps": found.steps,
            "products": found.products,
            "gradient": found.gradient,
            "converged": found.converged,
            "strength": found.strength,
            "right_by_strength": found.tried,
        }

    def values(self, blocks: Sequence[SparseRows]) -> SparseRows:
        idf, first, made = self.idf.cpu().numpy().astype(np.float64), 0, []
        for block in blocks:
            values = np.ones(len(block.values))
            if self.config.weights == "tfidf":
                values = (1 + np.log(block.values)) * idf[first + block.columns]
            made.append(block.of_length_one(values))
            first += block.width
        return concatenated(made)

    def scores(self, rows: SparseRows) -> Tensor:
        device, width = self.weights.device, self.bias.shape[0]
        if len(rows.columns):
            columns, starts, values = (
                torch.from_numpy(part).to(device) for part in (rows.columns, rows.starts[:-1], rows.values)
            )
            # Of many rows few are asked for: they alone are widened to float64.
            used, places = columns.unique(return_inverse=True)
            z = F.embedding_bag(places, self.weights[used].double(), starts, mode="sum", per_sample_weights=values)
        else:
            z = torch.zeros(len(rows), width, dtype=torch.float64, device=device)
        return by_class(z + self.bias, self.config.n_classes)

    def weights_of(self, columns: np.ndarray) -> np.ndarray:
        found = self.weights[torch.from_numpy(columns).to(self.weights.device)].double()
        return by_class(found, self.config.n_classes).cpu().numpy()

    @property
    def offsets(self) -> np.ndarray:
        return by_class(self.bias[None].double(), self.config.n_classes)[0].cpu().numpy()

    def settle(self) -> None:
        super().settle()
        if self.weights.is_meta or not len(self.bias):
            return
        width = 1 if self.config.n_classes == 2 else self.config.n_classes
        require(len(self.bias) == self.weights.shape[1] == width, "the number of classes")
        self.require_columns(len(self.weights))
        self.require_columns(len(self.idf))


def by_class(z: Tensor, n_classes: int) -> Tensor:
    """z (n, K) for every class, (n, C)."""
    return torch.cat([-z / 2, z / 2], 1) if n_classes == 2 else z


def _not_there(found: Solved, config: LinearConfig) -> str:
    steps = max(one.steps for one in found.minima)
    return (
        f"the solver did not converge: after {steps} of {config.max_steps} steps the gradient is "
        f"{found.gradient:.1e} of its first, and {config.tolerance:.1e} was asked for; raise model.max_steps or lower "
        f"model.strength"
    )


@register(
    "linear",
    sizes={
        "tiny": {"order": 1, "characters": (2, 3), "skip": 0},
        "small": {},
        "base": {},
        "paper": {"characters": (), "weights": "nb", "loss": "hinge", "strength": 1.0, "skip": 0},
    },
    paper="Wang, Manning 2012, Baselines and bigrams: simple, good sentiment and topic classification",
    task="labelled",
)
def linear(
    spec: DataSpec,
    *,
    order: int = 2,
    characters: tuple[int, ...] = (2, 5),
    weights: WeightsName = "nb",
    loss: Losses = "both",
    strength: float | None = None,
    skip: int = 2,
    min_texts: int = 1,
    lower: bool = True,
    tolerance: float = 1e-4,
    max_steps: int = 100,
) -> LinearConfig:
    """A weight for each n-gram of words and characters, fitted exactly."""
    counted = (spec.n_classes, order, characters, min_texts, lower)
    return LinearConfig(*counted, weights, loss, strength, tolerance, max_steps, skip=skip)
