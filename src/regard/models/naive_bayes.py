"""Naive Bayes: how often each n-gram occurs in the texts of each class (Maron 1961; Wang and Manning 2012).

    log p(c | text) = log p(c) + sum_f x_f log p(f | c) + constant
    p(c) = n_c / n                                    p(f | c) = (n_fc + alpha) / (N_c + alpha F)

    x_f    how often n-gram f occurs in the text; `binary`: 1 where it occurs, in counting too
    n_fc   how often it occurs in the texts of class c, N_c that of all n-grams, F how many different ones there are
    n_c    texts of class c, of n; each times the weight of its class where there are such
    alpha  what is added to every count: 1 is Laplace's rule

It is naive in taking n-grams for independent of each other given the class. One pass counts; nothing is optimised. Only
n-grams that a class has seen are kept for it: p(f | c) of one that it has not is alpha / (N_c + alpha F), so that

    log p(f | c) = log(alpha / (N_c + alpha F)) + log(1 + n_fc / alpha)

is one number a class and one for each n-gram seen in it, however many classes there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.fitting.model import require
from regard.fitting.spans import places, places_on
from regard.fitting.sparse import SparseRows, summed
from regard.models.gram_classifier import GramClassifier, GramConfig, concatenated, labels_of

Counting = Literal["multinomial", "binary"]


@dataclass(frozen=True)
class NaiveBayesConfig(GramConfig, kind="naive_bayes"):
    """counting: how often an n-gram occurs in a text, or whether it does. alpha: added to every count."""

    counting: Counting = "binary"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check(0 < self.alpha < math.inf, f"alpha must be positive and finite, found {self.alpha}")

    def build(self) -> NaiveBayes:
        return NaiveBayes(self)


class NaiveBayes(GramClassifier):
    """n-gram f has entries first[f] .. first[f + 1] - 1: the classes that saw it, and log(1 + n_fc / alpha)."""

    config: NaiveBayesConfig
    weighs_classes = True
    prior: Tensor
    unseen: Tensor
    first: Tensor
    classes: Tensor
    seen: Tensor

    def __init__(self, config: NaiveBayesConfig) -> None:
        super().__init__(config)
        for name in ("prior", "unseen", "seen"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))
        for name in ("first", "classes"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        labels, alpha, n_classes = labels_of(data), self.config.alpha, self.config.n_classes
        rows = self.values(self.learn_grams(data.column("text"), tell)).transposed()
        table = summed(rows.row_of, labels[rows.columns], rows.values, len(rows), n_classes)  # n_fc
        totals = np.bincount(table.columns, table.values, minlength=n_classes)  # N_c
        texts = np.bincount(labels, minlength=n_classes) * np.array(settings.class_weights or (1.0,))
        numbers = {
            "prior": np.log(np.maximum(texts, 1e-9) / max(1.0, texts.sum())),
            "unseen": np.log(alpha) - np.log(totals + alpha * max(1, self.n_grams)),
            "first": table.starts.astype(np.int64),
            "classes": table.columns.astype(np.int64),
            "seen": np.log1p(table.values / alpha),
        }
        self.take({name: torch.from_numpy(value) for name, value in numbers.items()})
        return {"told": f"{self.n_grams:,} n-grams, {len(table.values):,} counts, {n_classes:,} classes"}

    def values(self, blocks: Sequence[SparseRows]) -> SparseRows:
        rows = concatenated(blocks)
        return rows.with_values(np.minimum(rows.values, 1.0)) if self.config.counting == "binary" else rows

    def scores(self, rows: SparseRows) -> Tensor:
        device = self.prior.device
        row, column, x = (torch.from_numpy(part).to(device) for part in (rows.row_of, rows.columns, rows.values))
        weight = torch.zeros(len(rows), dtype=torch.float64, device=device).index_add(0, row, x)
        found = self.prior + weight[:, None] * self.unseen
        sizes = self.first[column + 1] - self.first[column]
        at = places_on(self.first[column], sizes)
        cells = row.repeat_interleave(sizes) * self.config.n_classes + self.classes[at]
        added = x.repeat_interleave(sizes) * self.seen[at]
        return found.flatten().index_add(0, cells, added).view_as(found)

    def weights_of(self, columns: np.ndarray) -> np.ndarray:
        found = np.tile(self.unseen.cpu().numpy(), (len(columns), 1))
        first, classes, seen = (part.cpu().numpy() for part in (self.first, self.classes, self.seen))
        sizes = first[columns + 1] - first[columns]
        at = places(first[columns], sizes)
        found[np.repeat(np.arange(len(columns)), sizes), classes[at]] += seen[at]
        return found

    def beyond_average(self, numbers: Sequence[int]) -> np.ndarray:
        """As of its base, of what was seen alone: no number is made for a class that did not see an n-gram."""
        unseen, first, classes, seen = (
            part.cpu().numpy() for part in (self.unseen, self.first, self.classes, self.seen)
        )
        rows = np.repeat(np.arange(self.n_grams), np.diff(first))
        average = np.bincount(rows, seen, self.n_grams) / self.config.n_classes + unseen.mean()
        found = unseen[list(numbers)] - average[:, None]
        for place, number in enumerate(numbers):
            at = classes == number
            found[rows[at], place] += seen[at]
        return found

    @property
    def offsets(self) -> np.ndarray:
        return self.prior.cpu().numpy()

    def settle(self) -> None:
        super().settle()
        n_classes = self.config.n_classes
        if self.prior.is_meta or not len(self.prior):
            return
        require(len(self.prior) == len(self.unseen) == n_classes, "the number of classes")
        self.require_columns(len(self.first) - 1)
        rises = int(self.first[0]) == 0 and bool((self.first.diff() >= 0).all())
        require(rises and int(self.first[-1]) == len(self.classes) == len(self.seen), "first")
        require(not len(self.classes) or 0 <= int(self.classes.min()) <= int(self.classes.max()) < n_classes, "classes")


@register(
    "naive_bayes",
    sizes={
        "tiny": {"order": 1},
        "small": {},
        "base": {},
        "paper": {"order": 2, "counting": "multinomial", "alpha": 1.0},
    },
    paper="Wang, Manning 2012, Baselines and bigrams: simple, good sentiment and topic classification",
    task="labelled",
)
def naive_bayes(
    spec: DataSpec,
    *,
    order: int = 2,
    characters: tuple[int, ...] = (),
    counting: Counting = "binary",
    alpha: float = 1.0,
    min_texts: int = 1,
    lower: bool = True,
) -> NaiveBayesConfig:
    """Counts of n-grams in the texts of each class, taken for independent."""
    return NaiveBayesConfig(spec.n_classes, order, characters, min_texts, lower, counting, alpha)
