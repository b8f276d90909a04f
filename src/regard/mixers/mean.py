"""Running mean: the deep averaging network's view of the past (Iyyer et al. 2015), made causal for language modelling.

    y_t = (x_1 + .. + x_t) / t

Order is forgotten exactly: any shuffle of x_1 .. x_t gives the same y_t. The state is the sum so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, zero_position
from regard.core.tap import Tap


@dataclass(frozen=True)
class MeanState(State):
    """total (B, D): the sum of the vectors seen."""

    total: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


@dataclass(frozen=True)
class MeanConfig(MixerConfig, kind="mean"):
    """Nothing to choose."""

    def build(self) -> RunningMean:
        return RunningMean(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {"mean": cls(8)}


class RunningMean(Mixer):
    """The mean of all vectors up to each position."""

    def __init__(self, config: MeanConfig) -> None:
        super().__init__()
        self.d_model = config.d_model
        self.received = Tap()
        # There is no parameter: this tells where a state should live and of what number type it is (Mixer.zeros).
        self.register_buffer("origin", torch.zeros(config.d_model), persistent=False)

    def init_state(self, batch_size: int) -> State:
        total = self.zeros(batch_size, self.d_model, dtype=self.dtype_of_sums())
        return MeanState(total, zero_position(batch_size, total.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, MeanState)
        x = self.received(x)
        totals = state.total[:, None] + x.to(state.total.dtype).cumsum(1)  # (B, T, D); padding adds nothing
        counts = state.count[:, None] + torch.arange(1, x.shape[1] + 1, device=x.device)  # (B, T)
        after = MeanState(totals[:, -1], advance(state.count, x.shape[1], context.lengths))
        return (totals / counts[..., None]).to(x.dtype), after
