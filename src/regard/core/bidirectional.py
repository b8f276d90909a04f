"""Bidirectional: what a position knows of both sides (Schuster and Paliwal 1997).

Itself a mixer, as every composition is (core/stack.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import Position, State, advance, zero_position


@dataclass(frozen=True)
class BidirectionalConfig(MixerConfig, kind="bidirectional"):
    """A mixer over the sequence and a second one over its reversal, concatenated: twice the width goes out.

    `d_model` is the width of the input; each direction is `mixer`, and a linear map brings the pair back to
    `d_model` when `project` holds.
    """

    mixer: MixerConfig
    project: bool = True

    @property
    def d_read(self) -> int:
        return self.mixer.d_read

    @property
    def d_given(self) -> int:
        return self.d_model if self.project else 2 * self.d_model

    def build(self) -> Bidirectional:
        return Bidirectional(self)


class Bidirectional(Mixer):
    """y_t = [forward_t ; backward_t], where the backward part reads each row from its last real token to its first."""

    causal, composed, skips_state = False, True, True

    def __init__(self, config: BidirectionalConfig) -> None:
        super().__init__()
        self.past = config.mixer.build()
        self.future = config.mixer.build()
        self.pair_to_output = nn.Linear(2 * config.d_model, config.d_model) if config.project else nn.Identity()
        self.reach = self.past.reach

    @property
    def max_length(self) -> int | None:
        """Positions beyond which the mixer is undefined; None without such a limit."""
        return getattr(self.past, "max_length", None)

    def init_state(self, batch_size: int) -> State:
        return Position(zero_position(batch_size, self.device_of_state()))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        past, _ = self.past(x, None, context)
        future, _ = self.future(reverse(x, context.lengths), None, context)
        y = self.pair_to_output(torch.cat([past, reverse(future, context.lengths)], -1))
        return y, None if state is None else Position(advance(state.position, x.shape[1], context.lengths))


def reverse(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Each row's real tokens in reverse order, its padding left where it is."""
    if lengths is None:
        return x.flip(1)
    t = torch.arange(x.shape[1], device=x.device)
    index = torch.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)  # (B, T)
    return x.gather(1, index.reshape(*index.shape, *[1] * (x.dim() - 2)).expand_as(x))
