"""The moving average of the weights: a <- d a + (1 - d) w after every step (Polyak and Juditsky 1992).

While few steps were made the decay is (1 + n) / (10 + n), so that the random start is soon forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.training.parallel.ranks import ALONE, Ranks


class Ema:
    """The average of a model's parameters; with decay 0 it is none and the parameters stand for themselves."""

    def __init__(self, model: nn.Module, decay: float, ranks: Ranks = ALONE) -> None:
        self.decay, self.ranks = decay, ranks
        self.current = dict(model.named_parameters()) if decay > 0 else {}
        self.mean = {name: parameter.detach().clone() for name, parameter in self.current.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take the weights after `step`, counted from 0."""
        if self.decay > 0:
            decay = min(self.decay, (1 + step) / (10 + step))
            means = [self.ranks.local(mean) for mean in self.mean.values()]
            weights = [self.ranks.local(weight) for weight in self.current.values()]
            torch._foreach_lerp_(means, weights, 1 - decay)  # pyright: ignore[reportPrivateImportUsage]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model with the average as its weights, while the block runs."""
        last = {name: parameter.detach().clone() for name, parameter in self.current.items()}
        self._put(self.mean)
        try:
            yield
        finally:
            self._put(last)

    def tensors(self) -> dict[str, Tensor]:
        """The average by parameter name."""
        return dict(self.mean)

    def _put(self, values: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.current.items():
                parameter.copy_(values[name])
