"""The average: the mean of the numbers of training, whatever is read. What every other model has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.context import EMPTY, Context
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.core.state import State
from regard.fitting.model import FittedConfig, FittedModel, require
from regard.models.gram_classifier import ExampleTexts


@dataclass(frozen=True)
class AverageConfig(FittedConfig, kind="average"):
    """Nothing is to be set."""

    def build(self) -> Average:
        return Average(self)

    def example(self) -> ExampleTexts:
        return ExampleTexts(1)


class Average(FittedModel):
    """The same number for every text."""

    mean: Tensor

    def __init__(self, config: AverageConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("mean", torch.zeros(0, dtype=torch.float64))

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        numbers = np.asarray(data.rows.numbers, np.float64)
        self.take({"mean": torch.tensor([numbers.mean() if len(numbers) else 0.0], dtype=torch.float64)})
        return {"told": f"the mean of {len(numbers):,} numbers"}

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """(B, 1)."""
        return self.mean.to(self.like.dtype).expand(len(tokens), 1), None

    def settle(self) -> None:
        require(len(self.mean) in (0, 1), "the number of means")


@register("average", sizes={size: {} for size in ("tiny", "small", "base", "paper")}, task="regression")
def average(_spec: DataSpec) -> AverageConfig:
    """The mean of the numbers of training, whatever is read."""
    return AverageConfig()
