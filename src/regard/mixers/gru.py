"""Gated recurrent unit (Cho et al. 2014), in the two conventions in use.

convention = "torch", as most libraries compute it (the reset gate after the matrix product, z keeps the past):

    r = sigmoid(W_r x + U_r h')      z = sigmoid(W_z x + U_z h')
    n = tanh(W_n x + r * (U_n h'))   h = (1 - z) * n + z * h'

convention = "cho" (the reset gate before the product, z takes the new), as Bahdanau et al. 2014 (A.1.1) and Chung et
al. 2014 print it:

    n = tanh(W_n x + U_n (r * h'))   h = (1 - z) * h' + z * n

Cho et al. 2014 themselves reset before the product too, but let z keep the past (equation 7), as torch does.

Glossary
h'  previous hidden state    r  reset gate    z  update gate    n  candidate, also written h~
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer, Shows, scan
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, stepped, zero_position
from regard.core.tap import Tap
from regard.kernels.end_to_end import packed_recurrence
from regard.kernels.fused_cell import run_cell
from regard.mixers.rnn import (
    HiddenState,
    cell_weights,
    check_recurrent,
    dropped_weights,
    last_hidden,
    output_map,
    weight_drop,
)


@dataclass(frozen=True)
class GruConfig(MixerConfig, kind="gru"):
    """d_hidden defaults to d_model; another width needs `project`, a map back to d_model.

    d_input: width of the input where it differs from that of the output, as inside a larger cell.
    weight_dropout: the share of hidden-to-hidden weights that is gone from a call while training, the same ones at all
    of its tokens (Merity et al. 2018, 2).
    """

    d_hidden: int | None = None
    bias: bool = True
    project: bool = False
    convention: Literal["torch", "cho"] = "torch"
    d_input: int | None = None
    weight_dropout: float = 0.0

    def __post_init__(self) -> None:
        check_recurrent(self.d_model, self.d_hidden, self.project, self.weight_dropout)

    @property
    def d_read(self) -> int:
        return self.d_input or self.d_model

    def build(self) -> Gru:
        return Gru(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        plain: dict[str, MixerConfig] = {
            "gru": cls(8),
            "gru-cho": cls(8, convention="cho"),
            "gru-project": cls(8, 6, project=True),
        }
        return plain | {"gru-weight-drop": cls(8, weight_dropout=0.5)}


class Gru(Mixer):
    """torch's fused loop where the convention is torch's; the equations above, written out, otherwise."""

    packs = True
    shows: ClassVar[Shows] = {"update_gate": "gate", "reset_gate": "gate", "hidden": "state"}
    writes_to_stream = ("hidden_to_output",)

    def __init__(self, config: GruConfig) -> None:
        super().__init__()
        self.d_hidden = config.d_hidden or config.d_model
        self.resets_first = config.convention == "cho"
        self.packs = type(self).packs and not self.resets_first
        self.cell = nn.GRU(config.d_input or config.d_model, self.d_hidden, bias=config.bias, batch_first=True)
        self.hidden_to_output = output_map(self.d_hidden, config.d_model, config.project)
        self.weight_dropout = weight_drop(config.weight_dropout)
        self.reset_gate, self.update_gate, self.candidate, self.hidden = (Tap(None) for _ in range(4))

    def init_state(self, batch_size: int) -> State:
        hidden = self.zeros(batch_size, self.d_hidden)
        return HiddenState(hidden, zero_position(batch_size, hidden.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, HiddenState)
        recorded = any(tap.recorded for tap in (self.reset_gate, self.update_gate, self.candidate, self.hidden))
        dropped = dropped_weights(self.cell, self.weight_dropout)
        if self.resets_first or recorded:
            return scan(partial(self._stepped, dropped), x, state, context)
        if context.offsets is not None:
            return self.hidden_to_output(packed_recurrence(self.cell, x, context.offsets, dropped)), None
        hidden, _ = run_cell(self.cell, x, state.hidden.to(x.dtype)[None].contiguous(), dropped)
        last = last_hidden(hidden, state.hidden, context.lengths)
        return self.hidden_to_output(hidden), HiddenState(last, advance(state.count, x.shape[1], context.lengths))

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        return self._stepped(dropped_weights(self.cell, self.weight_dropout), x, state, context)

    def _stepped(self, dropped: Tensor | None, x: Tensor, state: State, context: Context) -> tuple[Tensor, State]:
        assert isinstance(state, HiddenState)
        w, before = cell_weights(self.cell, dropped), state.hidden
        x_r, x_z, x_n = F.linear(x, w.input, w.input_bias).chunk(3, -1)
        h_r, h_z, h_n = F.linear(before, w.hidden, w.hidden_bias).chunk(3, -1)
        r = self.reset_gate(torch.sigmoid(x_r + h_r))
        z = self.update_gate(torch.sigmoid(x_z + h_z))
        if self.resets_first:
            candidate_rows = slice(2 * self.d_hidden, None)
            bias = None if w.hidden_bias is None else w.hidden_bias[candidate_rows]
            n = self.candidate(torch.tanh(x_n + F.linear(r * before, w.hidden[candidate_rows], bias)))
            h = (1 - z) * before + z * n
        else:
            n = self.candidate(torch.tanh(x_n + r * h_n))
            h = (1 - z) * n + z * before
        h = self.hidden(h)
        return self.hidden_to_output(h), HiddenState(h.to(before.dtype), stepped(state.count, context.owned))
