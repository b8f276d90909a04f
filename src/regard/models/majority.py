"""The majority: the most frequent class, whatever is read. What every other model has to beat.

p(c) = n_c / n

n_c   examples of class c in the training part, of n
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
from regard.models.gram_classifier import ExampleTexts, labels_of


@dataclass(frozen=True)
class MajorityConfig(FittedConfig, kind="majority"):
    """n_classes: labels."""

    n_classes: int

    def __post_init__(self) -> None:
        check(self.n_classes > 0, f"n_classes must be positive, found {self.n_classes}")

    def build(self) -> Majority:
        return Majority(self)

    def example(self) -> ExampleTexts:
        return ExampleTexts(self.n_classes)


class Majority(FittedModel):
    """log p(c) of every class, the same for every text."""

    log_p: Tensor

    def __init__(self, config: MajorityConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("log_p", torch.zeros(0, dtype=torch.float64))

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        counts = np.bincount(labels_of(data), minlength=self.config.n_classes)
        # A class that no training row is left of keeps a finite, hopeless chance.
        self.take({"log_p": torch.from_numpy(np.log(np.maximum(counts, 1e-9) / max(1, counts.sum())))})
        share = counts.max() / max(1, counts.sum())
        return {"told": f"{share:.1%} of the training part are of one class of {self.config.n_classes:,}"}

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """log p, (B, C)."""
        return self.log_p.to(self.like.dtype).expand(len(tokens), -1), None

    def settle(self) -> None:
        require(len(self.log_p) in (0, self.config.n_classes), "the number of classes")


@register("majority", sizes={size: {} for size in ("tiny", "small", "base", "paper")}, task="labelled")
def majority(spec: DataSpec) -> MajorityConfig:
    """The most frequent class, whatever is read."""
    return MajorityConfig(spec.n_classes)
