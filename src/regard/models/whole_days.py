"""The half of a forecaster that is solved for: LEAR's linear forecast from whole days, beside a net that learns.

    r_h = A_h . g + b_h        g: whole days before, what is known ahead, the weekday (regard/models/lear.py)

Before it is solved for it is the mean of the two naive forecasts: yesterday, and the same day a week ago.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.core.fitted import FitSettings, Tell
from regard.core.inputs import PastKnown
from regard.fitting.level import levelled
from regard.fitting.windows import WholeSeasons, Windows
from regard.models.lear import LearConfig

FEWEST = 20  # horizons that it is solved for from


def seasons(config: LearConfig) -> WholeSeasons:
    """What makes g of a window."""
    return WholeSeasons(config.channels, config.horizon, config.season, config.lags, config.known_lags)


def is_enough(data: Windows, tell: Tell) -> bool:
    """Whether there are horizons enough to solve for a linear forecast; if not, it is told."""
    n = len(data.rows.origins)
    if n < FEWEST:
        tell.note(
            f"{n} horizon{' is' if n == 1 else 's are'} too few to solve for a linear forecast: give {FEWEST} at least"
        )
    return n >= FEWEST


class WholeDays(nn.Module):
    """weights (F, H): A. bias (H,): b. Neither is learnt by steps."""

    weights: Tensor
    bias: Tensor

    def __init__(self, config: LearConfig) -> None:
        super().__init__()
        self.config = config
        self.seasons = seasons(config)
        weights, season, steps = torch.zeros(self.seasons.n_columns, config.horizon), config.season, config.horizon
        near = [place for place, lag in enumerate(config.lags) if lag in (1, 7)]
        for place in near:
            # Of a horizon that is longer than a season it is repeated.
            weights[[place * season + step % season for step in range(steps)], range(steps)] = 1 / len(near)
        self.register_buffer("weights", weights)
        self.register_buffer("bias", torch.zeros(config.horizon))

    @torch.no_grad()
    def solve(self, data: Windows, settings: FitSettings, tell: Tell) -> Tensor:
        """Take A and b from the data, and give the misses (H, Q) of days that were held out."""
        lear = self.config.build()
        lear.fit(data, settings, tell)
        self.weights.copy_(lear.weights)
        self.bias.copy_(lear.bias)
        return lear.errors

    def forward(self, inputs: PastKnown) -> list[Tensor]:
        """r, its level and its spread, each (B, H, 1)."""
        config = self.config
        # The net may read much more than this forecast needs.
        recent = PastKnown(inputs.past[:, -config.history :], inputs.known)
        window, level = levelled(recent, config.channels, config.level * config.season, config.asinh)
        columns = self.seasons.columns(window.past, window.known)
        found = (columns @ self.weights + self.bias)[..., None]
        return [found, level.middle[..., :1].expand_as(found), level.spread[..., :1].expand_as(found)]
