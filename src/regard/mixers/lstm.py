"""Long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000).

State and output are two things: the cell c is what is kept, h is what is shown.

    i = sigmoid(W_i [h', x] + b_i)      what to write
    f = sigmoid(W_f [h', x] + b_f)      what to keep
    g = tanh(W_g [h', x] + b_g)         the candidate, also written c~
    o = sigmoid(W_o [h', x] + b_o)      what to show
    c = f * c' + i * g                  h = o * tanh(c)

Glossary
h', c'  the previous output and cell
i f g o  stacked in this order in one matrix, as torch stores them
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.bidirectional import BidirectionalConfig
from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer, Shows, scan
from regard.core.stack import MixerConfig, ResidualConfig, StackConfig
from regard.core.state import State, advance, stepped, zero_position
from regard.core.tap import Tap
from regard.kernels.choice import takes_kernel
from regard.kernels.end_to_end import packed_recurrence
from regard.kernels.fused_cell import run_cell
from regard.kernels.operators import if_built
from regard.layers.linear import linear_sum
from regard.mixers.rnn import cell_weights, check_recurrent, dropped_weights, output_map, weight_drop


@dataclass(frozen=True)
class LstmState(State):
    """hidden (B, d_hidden): the last h. cell (B, d_hidden): the last c."""

    hidden: Tensor
    cell: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


@dataclass(frozen=True)
class LstmConfig(MixerConfig, kind="lstm"):
    """d_hidden defaults to d_model; another width needs `project`. forget_bias is added to b_f at the start.

    d_input: width of the input where it differs from that of the output, as inside a larger cell.
    weight_dropout: the share of hidden-to-hidden weights that is gone from a call while training, the same ones at all
    of its tokens (Merity et al. 2018, 2).
    """

    d_hidden: int | None = None
    bias: bool = True
    project: bool = False
    forget_bias: float = 1.0
    d_input: int | None = None
    weight_dropout: float = 0.0

    def __post_init__(self) -> None:
        check_recurrent(self.d_model, self.d_hidden, self.project, self.weight_dropout)

    @property
    def d_read(self) -> int:
        return self.d_input or self.d_model

    def build(self) -> Lstm:
        return Lstm(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {
            "lstm": cls(8),
            "lstm-project": cls(8, 6, project=True),
            "lstm-weight-drop": cls(8, weight_dropout=0.5),
            "stacked-lstm": StackConfig(8, (cls(8), cls(8))),
            "residual-lstm": ResidualConfig(8, cls(8)),
            "bidirectional-lstm": BidirectionalConfig(8, cls(8)),
        }


class Lstm(Mixer):
    """torch's fused loop over a chunk; the equations above, written out, for one step and when a tap is recorded."""

    packs = True
    shows: ClassVar[Shows] = {"input_gate": "gate", "forget_gate": "keep", "output_gate": "gate", "memory": "state"}
    writes_to_stream = ("hidden_to_output",)

    def __init__(self, config: LstmConfig) -> None:
        super().__init__()
        self.d_hidden = config.d_hidden or config.d_model
        self.cell = nn.LSTM(config.d_input or config.d_model, self.d_hidden, bias=config.bias, batch_first=True)
        self.hidden_to_output = output_map(self.d_hidden, config.d_model, config.project)
        self.weight_dropout = weight_drop(config.weight_dropout)
        if config.bias:
            with torch.no_grad():
                self.cell.get_parameter("bias_ih_l0")[self.d_hidden : 2 * self.d_hidden] += config.forget_bias
        self.input_gate, self.forget_gate, self.candidate, self.output_gate = (Tap(None) for _ in range(4))
        self.memory = Tap(None)

    def init_state(self, batch_size: int) -> State:
        zeros = self.zeros(batch_size, self.d_hidden)
        return LstmState(zeros, zeros.clone(), zero_position(batch_size, zeros.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, LstmState)
        dropped = dropped_weights(self.cell, self.weight_dropout)
        if self._heard() or lacks_fused_cell(x):
            return scan(partial(self._stepped, dropped), x, state, context)
        if context.offsets is not None:
            return self.hidden_to_output(packed_recurrence(self.cell, x, context.offsets, dropped)), None
        before = state.hidden.to(x.dtype)[None].contiguous(), state.cell.to(x.dtype)[None].contiguous()
        if context.lengths is None:
            hidden, (h, c) = run_cell(self.cell, x, before, dropped)
            h, c = h[0], c[0]
        else:
            hidden, h, c = self._padded(x, before, context.lengths, dropped)
        h, c = h.to(state.hidden.dtype), c.to(state.cell.dtype)
        after = LstmState(h, c, advance(state.count, x.shape[1], context.lengths))
        return self.hidden_to_output(hidden), after

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        return self._stepped(dropped_weights(self.cell, self.weight_dropout), x, state, context)

    def _stepped(self, dropped: Tensor | None, x: Tensor, state: State, context: Context) -> tuple[Tensor, State]:
        assert isinstance(state, LstmState)
        w = cell_weights(self.cell, dropped)
        before = linear_sum(state.hidden, w.hidden, w.hidden_bias)
        gates = linear_sum(x, w.input, w.input_bias, before)  # (B, 4 d_hidden)
        plain = state.hidden.is_contiguous() and state.cell.is_contiguous() and gates.is_contiguous()
        if plain and not self._heard() and takes_kernel(gates, state.hidden, state.cell):
            alive = None if context.owned is None else context.owned.alive
            found = if_built("the LSTM of one token", _step_by_kernel, gates, state.hidden, state.cell, alive)
            if found is not None:
                y, h, c = found
                return self.hidden_to_output(y), LstmState(h, c, stepped(state.count, context.owned))
        i, f, g, o = gates.chunk(4, -1)
        i, f, o = self.input_gate(i.sigmoid()), self.forget_gate(f.sigmoid()), self.output_gate(o.sigmoid())
        g = self.candidate(g.tanh())
        c = self.memory(f * state.cell + i * g)
        h = o * c.tanh()
        after = LstmState(h.to(state.hidden.dtype), c.to(state.cell.dtype), stepped(state.count, context.owned))
        return self.hidden_to_output(h), after

    def _padded(
        self, x: Tensor, before: tuple[Tensor, Tensor], lengths: Tensor, dropped: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of unequal length: torch stops each row at its length, but takes no empty row, so those are put back."""
        some = lengths.clamp(min=1).cpu()
        packed = pack_padded_sequence(x, some, batch_first=True, enforce_sorted=False)
        outputs, (h, c) = run_cell(self.cell, packed, before, dropped)
        hidden, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
        empty = (lengths == 0).to(x.device)[:, None]
        return hidden, torch.where(empty, before[0][0], h[0]), torch.where(empty, before[1][0], c[0])

    def _heard(self) -> bool:
        taps = (self.input_gate, self.forget_gate, self.candidate, self.output_gate, self.memory)
        return any(tap.recorded for tap in taps)


def _step_by_kernel(gates: Tensor, hidden: Tensor, cell: Tensor, alive: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    from regard.kernels.state_step_triton import lstm_step

    return lstm_step(gates, hidden, cell, alive)


def lacks_fused_cell(x: Tensor) -> bool:
    """Under float16 autocast torch takes a fused LSTM on the CPU that most processors do not have."""
    cpu = x.device.type == "cpu"
    return cpu and torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.float16
