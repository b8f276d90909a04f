"""The head of one number: a rating, a price, an age, in deviations from the mean of training.

y = w . f(h) + b         f a small net or nothing

squared   (y - t)^2                                      told is the mean of what may be true
huber     (y - t)^2 within 1, 2 |y - t| - 1 beyond       a few wild numbers pull less (Huber 1964)
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NumberLoss = Literal["squared", "huber"]


class NumberHead(nn.Linear):
    """Vectors (..., D) to a number each. loss: of what is missed. transform: f."""

    def __init__(self, width: int, loss: NumberLoss = "squared", transform: nn.Module | None = None) -> None:
        super().__init__(width, 1)
        self.loss: NumberLoss = loss
        self.transform = nn.Identity() if transform is None else transform

    @property
    def n_answers(self) -> int:
        return 1

    @staticmethod
    def averaged(answers: Tensor) -> Tensor:
        """The mean of several models' numbers (K, ..., 1)."""
        return answers.mean(0)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # of vectors, and with targets if there are any
        self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0
    ) -> Tensor:
        """Numbers (..., 1), or with targets (...), NaN where one does not count, the summed loss."""
        told = super().forward(self.transform(vectors))
        if targets is None:
            return told
        missed = told[..., 0].to(torch.promote_types(told.dtype, torch.float32)) - targets.nan_to_num()
        none = torch.zeros_like(missed)
        loss = missed.square() if self.loss == "squared" else 2 * F.huber_loss(missed, none, reduction="none")
        return (loss * ~targets.isnan()).sum()
