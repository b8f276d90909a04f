"""Positions apart: nothing moves between them.

    y_t = x_t

What is left of a sequence model without its mixer: a word means the same wherever it stands, as the vectors of
word2vec, GloVe and fastText have it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import Position, State, advance, zero_position
from regard.core.tap import Tap


@dataclass(frozen=True)
class ApartConfig(MixerConfig, kind="apart"):
    """Nothing to choose."""

    def build(self) -> Apart:
        return Apart(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {"apart": cls(8)}


class Apart(Mixer):
    """Each vector as it is."""

    reach, permutes, skips_state = 1, True, True

    def __init__(self, config: ApartConfig) -> None:
        super().__init__()
        self.received = Tap()
        # There is no parameter: this tells where a state should live (Mixer.zeros).
        self.register_buffer("origin", torch.zeros(config.d_model), persistent=False)

    def init_state(self, batch_size: int) -> State:
        return Position(zero_position(batch_size, self.device_of_state()))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        y = self.received(x)
        return y, None if state is None else Position(advance(state.position, x.shape[1], context.lengths))
