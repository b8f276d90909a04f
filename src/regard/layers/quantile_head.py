"""Heads of forecasts: from vectors to the quantiles of each time ahead, and to their loss.

    z_h     = a . f_h + V y_h                        a linear forecast and what the net adds, for each quantile
    q_h     = S^-1(z_h) spread + level               S = asinh, which treats spikes as a logarithm would, or nothing
    pinball = max(q e, (q - 1) e),  e = value - q_h  the loss of one quantile q; with asinh e = S(value) - z_h

A quantile of S(value) is S of the quantile, so that a loss in stretched units asks for the same forecast, and a few
wild days do not drown the others.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

FARTHEST = 5.0  # |z| at most where it is stretched: 74 spreads away from the level


class QuantileHead(nn.Linear):
    """Quantiles of each time ahead. Its vectors (B, H, D + 3) end with a linear forecast, a level and a spread.

    Of n levels these stand side by side, (B, H, n (D + 3)), and the answer is the mean of what each gives.
    """

    quantiles: Tensor

    def __init__(self, width: int, quantiles: tuple[float, ...], asinh: bool = False) -> None:
        super().__init__(width, len(quantiles))
        nn.init.zeros_(self.weight)
        self.asinh = asinh
        self.register_buffer("quantiles", torch.tensor(quantiles), persistent=False)

    @property
    def n_answers(self) -> int:
        return self.out_features

    @staticmethod
    def averaged(answers: Tensor) -> Tensor:
        """The mean of several models' quantiles (K, B, H, Q)."""
        return answers.mean(0)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # of vectors, and with targets if there are any
        self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0
    ) -> Tensor:
        """Quantiles (B, H, Q), or with values (B, H), NaN where one does not count, the mean pinball loss, summed."""
        width, found = self.in_features, list[Tensor]()
        for part in vectors.split(width + 3, -1):
            y, linear, level, spread = part.split([width, 1, 1, 1], -1)
            found.append(self.told(linear + super().forward(y), level, spread, targets))
        return torch.stack(found).mean(0)

    def told(self, z: Tensor, level: Tensor, spread: Tensor, targets: Tensor | None) -> Tensor:
        """Quantiles (B, H, Q) of z (B, H, Q), or their loss."""
        if targets is None:
            return (z.clamp(-FARTHEST, FARTHEST).sinh() if self.asinh else z) * spread + level
        values = targets.nan_to_num()[..., None]
        found, values = (z, ((values - level) / spread).asinh()) if self.asinh else (z * spread + level, values)
        error = values - found.to(torch.promote_types(found.dtype, torch.float32))
        q = self.quantiles.to(error.dtype)
        loss = torch.maximum(q * error, (q - 1) * error).mean(-1)
        return (loss * ~targets.isnan()).sum()


class PairedQuantileHead(QuantileHead):
    """The quantiles of two forecasts, whose mean is the answer; each is the mean of what it makes of several levels.

    Its vectors (B, H, n (D + 3) + 3 m) are those of the first, a level after the other, and then of each of m levels
    the middle of the second, the level and the spread. misses (H, m Q) are how far the second's quantiles lie from
    those middles. The loss is the mean of all losses of each, and of both, so that each learns for itself.
    """

    misses: Tensor

    def __init__(
        self, width: int, quantiles: tuple[float, ...], horizon: int, asinh: bool = False, n_second: int = 1
    ) -> None:
        super().__init__(width, quantiles, asinh)
        self.n_second = n_second
        self.register_buffer("misses", torch.zeros(horizon, n_second * len(quantiles)))

    def forward(self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0) -> Tensor:
        ends = 3 * self.n_second
        own, theirs = vectors[..., :-ends], vectors[..., -ends:]
        first = super().forward(own, targets)
        solved = zip(theirs.chunk(self.n_second, -1), self.misses.chunk(self.n_second, -1), strict=True)
        second = [self.told(one[..., :1] + misses, one[..., 1:2], one[..., 2:], targets) for one, misses in solved]
        return (first + torch.stack(second).mean(0)) / 2
