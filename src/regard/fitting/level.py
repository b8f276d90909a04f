"""The level and the spread of what came last, by which all of a window is measured.

    z = (x - level) / spread        level: the median of the last steps; spread: what they miss it by in the mean

Each column has its own. A market whose prices have doubled then looks like itself (Kim et al. 2022), and what was
learnt of one year holds for the next. A least spread keeps a column that stood still from being blown up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.inputs import PastKnown
from regard.fitting.windows import CALENDAR, Channels

LEAST_SPREAD = 0.05


@dataclass(frozen=True)
class Level:
    """middle, spread (B, 1, 1 + M + P): of the value and of all else that changes from time to time."""

    middle: Tensor
    spread: Tensor
    channels: Channels

    @classmethod
    def of(cls, past: Float[Tensor, "B S _"], channels: Channels, steps: int) -> Level:
        """Of the last steps."""
        recent = channels.changing(past[:, -steps:])
        middle = _median(recent)
        return cls(middle, (recent - middle).abs().mean(1, keepdim=True) + LEAST_SPREAD, channels)

    def apply(self, inputs: PastKnown) -> PastKnown:
        """A window measured by it."""
        ahead, seen = self.channels.n_measured, 1 + self.channels.n_known
        changing = (self.channels.changing(inputs.past) - self.middle) / self.spread
        parts = [changing[..., : 1 + ahead], inputs.past[..., 1 + ahead : seen], changing[..., 1 + ahead :]]
        known = (inputs.known[..., :ahead] - self.middle[..., 1 : 1 + ahead]) / self.spread[..., 1 : 1 + ahead]
        return PastKnown(torch.cat(parts, -1), torch.cat([known, inputs.known[..., ahead:]], -1))

    @property
    def value(self) -> tuple[Tensor, Tensor]:
        """Level and spread of the value, (B, 1)."""
        return self.middle[..., 0], self.spread[..., 0]


def drawn(levels: Sequence[Level]) -> Level:
    """For each window one of several levels of it, any as likely as the others."""
    if len(levels) == 1:
        return levels[0]
    first = levels[0]
    which = torch.randint(len(levels), (len(first.middle), 1, 1), device=first.middle.device)
    middle, spread = first.middle, first.spread
    for number, level in enumerate(levels[1:], 1):
        middle = torch.where(which == number, level.middle, middle)
        spread = torch.where(which == number, level.spread, spread)
    return Level(middle, spread, first.channels)


def levelled(inputs: PastKnown, channels: Channels, steps: int, asinh: bool) -> tuple[PastKnown, Level]:
    """A window measured by its own level over the last steps, stretched or not, and that level."""
    level = Level.of(inputs.past, channels, steps)
    window = level.apply(inputs)
    return stretched(window, channels) if asinh else window, level


def stretched(window: PastKnown, channels: Channels) -> PastKnown:
    """asinh of all but the calendar."""
    seen = 1 + channels.n_known
    past = torch.cat([_all_but_calendar(window.past[..., :seen]), window.past[..., seen:].asinh()], -1)
    return PastKnown(past, _all_but_calendar(window.known))


def _all_but_calendar(numbers: Float[Tensor, "B _ K"]) -> Float[Tensor, "B _ K"]:
    return torch.cat([numbers[..., :-CALENDAR].asinh(), numbers[..., -CALENDAR:]], -1)


def _median(numbers: Float[Tensor, "B S _"]) -> Float[Tensor, "B 1 _"]:
    """Of two in the middle the lower one, as torch's."""
    if not torch.compiler.is_compiling():
        return numbers.median(1, keepdim=True).values
    # Sorted, which other programs can do: ONNX has no median.
    return numbers.sort(1).values[:, (numbers.shape[1] - 1) // 2][:, None]
