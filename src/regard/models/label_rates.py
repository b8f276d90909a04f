"""The rates of labels: how often each occurs in training, whatever is read. What every other model has to beat.

p_l = (n_l + 1/2) / (n + 1)        n_l of the n texts of training have label l
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.core.state import State
from regard.fitting.model import FittedConfig, FittedModel, require
from regard.models.gram_classifier import ExampleTexts


@dataclass(frozen=True)
class LabelRatesConfig(FittedConfig, kind="label_rates"):
    """n_classes: labels."""

    n_classes: int

    def __post_init__(self) -> None:
        check(self.n_classes > 0, f"n_classes must be positive, found {self.n_classes}")

    def build(self) -> LabelRates:
        return LabelRates(self)

    def example(self) -> ExampleTexts:
        return ExampleTexts(self.n_classes)


class LabelRates(FittedModel):
    """The log-odds of each label, the same for every text."""

    odds: Tensor

    def __init__(self, config: LabelRatesConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("odds", torch.zeros(0, dtype=torch.float64))

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        hits = np.asarray(data.rows.hits)
        counts, n = hits.sum(0, dtype=np.float64), len(hits)
        self.take({"odds": torch.from_numpy(np.log(counts + 0.5) - np.log(n - counts + 0.5))})
        return {"told": f"{counts.sum() / max(1, n):.2f} of {self.config.n_classes:,} labels for a text"}

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """(B, L)."""
        return self.odds.to(self.like.dtype).expand(len(tokens), -1), None

    def settle(self) -> None:
        require(len(self.odds) in (0, self.config.n_classes), "the number of labels")


@register("label_rates", sizes={size: {} for size in ("tiny", "small", "base", "paper")}, task="multilabel")
def label_rates(spec: DataSpec) -> LabelRatesConfig:
    """How often each label occurs in training, whatever is read."""
    return LabelRatesConfig(spec.n_classes)
