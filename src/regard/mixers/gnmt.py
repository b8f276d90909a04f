"""The decoder of GNMT: attention from the bottom layer, fed to all of them (Wu et al. 2016, sections 3 and 3.1).

    c_t = sum_j alpha_tj m_j                          alpha_t from the bottom layer's output at step t - 1
    x^1_t = LSTM_1([x_t ; c_t])                       the bottom layer, which attention waits for
    x^l_t = LSTM_l([x^(l-1)_t ; c_t])                 l = 2
    x^l_t = LSTM_l([x^(l-1)_t ; c_t]) + x^(l-1)_t     l >= 3: residual from the third layer on

Only the bottom layer has to go step by step; the layers above read its whole outputs at once.

Glossary
m_j    top layer of the encoder      c_t  context      x^l_t  output of layer l
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import Chain, State
from regard.mixers.attentive import AlignedCell, AttentiveConfig
from regard.mixers.lstm import LstmConfig


@dataclass(frozen=True)
class GnmtConfig(MixerConfig, kind="gnmt"):
    """n_layers LSTM layers of width d_model over a memory of width d_memory (None: d_model).

    dropout  between layers.
    """

    n_layers: int = 8
    d_memory: int | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check(self.n_layers > 0, f"n_layers must be positive, found {self.n_layers}")
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    def build(self) -> GnmtDecoder:
        return GnmtDecoder(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {"gnmt": cls(8, 4), "gnmt-shallow": cls(8, 1)}


class GnmtDecoder(Mixer):
    """Bottom layer with its attention, then layers that all read the same context."""

    needs_memory = skips_state = True

    def __init__(self, config: GnmtConfig) -> None:
        super().__init__()
        memory = config.d_memory or config.d_model
        self.bottom = AlignedCell(AttentiveConfig(config.d_model, "lstm", d_memory=memory, pooling="last"))
        upper = LstmConfig(config.d_model, d_input=config.d_model + memory)
        self.upper = nn.ModuleList(upper.build() for _ in range(config.n_layers - 1))
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    def init_state(self, batch_size: int) -> State:
        upper: list[Mixer] = list(self.upper)  # pyright: ignore[reportAssignmentType]  # ModuleList forgets their type
        return Chain((self.bottom.init_state(batch_size), *(layer.init_state(batch_size) for layer in upper)))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert state is None or isinstance(state, Chain)
        first = self.bottom.init_state(x.shape[0]) if state is None else state.parts[0]
        upper = [None] * len(self.upper) if state is None else state.parts[1:]
        bottom = self.bottom.met(first, context)
        if x.shape[1] == 0:
            return x, None if state is None else Chain((bottom, *state.parts[1:]))
        # Without a state nobody reads what padding, which comes last, has done to it.
        lengths = None if state is None else context.lengths
        _, hidden, looked, bottom = self.bottom(x, bottom, lengths)
        after = []
        for number, (layer, part) in enumerate(zip(self.upper, upper, strict=True), start=2):
            y, part = layer(self._input(hidden, looked), part, context)
            hidden = y + hidden if number >= 3 else y
            after.append(part)
        return hidden, None if state is None else Chain((bottom, *after))

    def _input(self, hidden: Tensor, looked: Tensor) -> Tensor:
        return torch.cat([self.dropout(hidden), looked], -1)
