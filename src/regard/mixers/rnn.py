"""Vanilla recurrence (Elman 1990).

    h_t = tanh(W_h h_(t-1) + W_i x_t + b)        y_t = W_o h_t   or   y_t = h_t

Glossary
h    hidden state, all that is remembered, width d_hidden
W_h  hidden to hidden      W_i  input to hidden      W_o  hidden to output (only when `project`)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer, Shows, scan
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, stepped, zero_position
from regard.core.tap import Tap
from regard.kernels.end_to_end import packed_recurrence
from regard.kernels.fused_cell import HIDDEN, run_cell


@dataclass(frozen=True)
class HiddenState(State):
    """hidden (B, d_hidden): the last h."""

    hidden: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


@dataclass(frozen=True)
class RnnConfig(MixerConfig, kind="rnn"):
    """d_hidden defaults to d_model; another width needs `project`, the map W_o back to d_model.

    d_input: width of the input where it differs from that of the output, as inside a larger cell.
    weight_dropout: the share of hidden-to-hidden weights that is gone from a call while training, the same ones at all
    of its tokens (Merity et al. 2018, 2).
    """

    d_hidden: int | None = None
    bias: bool = True
    project: bool = False
    d_input: int | None = None
    weight_dropout: float = 0.0

    def __post_init__(self) -> None:
        check_recurrent(self.d_model, self.d_hidden, self.project, self.weight_dropout)

    @property
    def d_read(self) -> int:
        return self.d_input or self.d_model

    def build(self) -> Rnn:
        return Rnn(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        lecture = cls(8, 6, bias=False, project=True)
        return {"rnn": cls(8), "rnn-lecture": lecture, "rnn-weight-drop": cls(8, weight_dropout=0.5)}


class Rnn(Mixer):
    """torch's fused loop over a chunk; the equation above, written out, for one step and when its tap is recorded."""

    packs = True
    shows: ClassVar[Shows] = {"hidden": "state"}
    writes_to_stream = ("hidden_to_output",)

    def __init__(self, config: RnnConfig) -> None:
        super().__init__()
        self.d_hidden = config.d_hidden or config.d_model
        self.cell = nn.RNN(config.d_input or config.d_model, self.d_hidden, bias=config.bias, batch_first=True)
        self.hidden_to_output = output_map(self.d_hidden, config.d_model, config.project)
        self.weight_dropout = weight_drop(config.weight_dropout)
        self.received, self.hidden = Tap(None), Tap(None)

    def init_state(self, batch_size: int) -> State:
        hidden = self.zeros(batch_size, self.d_hidden)
        return HiddenState(hidden, zero_position(batch_size, hidden.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, HiddenState)
        dropped = dropped_weights(self.cell, self.weight_dropout)
        if self.hidden.recorded or self.received.recorded:
            return scan(partial(self._stepped, dropped), x, state, context)
        if context.offsets is not None:
            return self.hidden_to_output(packed_recurrence(self.cell, x, context.offsets, dropped)), None
        hidden, _ = run_cell(self.cell, x, state.hidden.to(x.dtype)[None].contiguous(), dropped)  # (B, T, d_hidden)
        last = last_hidden(hidden, state.hidden, context.lengths)
        return self.hidden_to_output(hidden), HiddenState(last, advance(state.count, x.shape[1], context.lengths))

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        return self._stepped(dropped_weights(self.cell, self.weight_dropout), x, state, context)

    def _stepped(self, dropped: Tensor | None, x: Tensor, state: State, context: Context) -> tuple[Tensor, State]:
        assert isinstance(state, HiddenState)
        w, x = cell_weights(self.cell, dropped), self.received(x)
        h = torch.tanh(F.linear(state.hidden, w.hidden, w.hidden_bias) + F.linear(x, w.input, w.input_bias))
        h = self.hidden(h)
        return self.hidden_to_output(h), HiddenState(h.to(state.hidden.dtype), stepped(state.count, context.owned))


@dataclass(frozen=True)
class CellWeights:
    """The parameters of torch's one-layer cells under names that say from where to where."""

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None
    hidden_bias: Tensor | None


def cell_weights(cell: nn.RNNBase, dropped: Tensor | None = None) -> CellWeights:
    """dropped: what stands in the place of the hidden-to-hidden matrix."""
    return CellWeights(
        cell.get_parameter("weight_ih_l0"),
        cell.get_parameter(HIDDEN) if dropped is None else dropped,
        cell.get_parameter("bias_ih_l0") if cell.bias else None,
        cell.get_parameter("bias_hh_l0") if cell.bias else None,
    )


def last_hidden(hidden: Tensor, before: Tensor, lengths: Tensor | None) -> Tensor:
    """h at each row's last real token of hidden (B, T, D); `before` (B, D), whose number type stays, where none was."""
    if lengths is None:
        return hidden[:, -1].to(before.dtype)
    seen = torch.cat([before[:, None], hidden.to(before.dtype)], 1)
    return seen[torch.arange(seen.shape[0], device=seen.device), lengths.to(seen.device)]


def output_map(d_hidden: int, d_model: int, project: bool) -> nn.Module:
    """W_o, or nothing."""
    return nn.Linear(d_hidden, d_model, bias=False) if project else nn.Identity()


def weight_drop(share: float) -> nn.Dropout | None:
    """What drops this share of the hidden-to-hidden weights; None where none is dropped."""
    return nn.Dropout(share) if share else None


def dropped_weights(cell: nn.RNNBase, dropout: nn.Dropout | None) -> Tensor | None:
    """W_h with a share of its weights gone and the others larger for it, drawn now; None where it stays whole.

    DropConnect (Wan et al. 2013) on the recurrence alone: a unit of the state is never forgotten, only ways to it are
    closed, and torch's fused loop stays what it is (Merity et al. 2018, 2).
    """
    return dropout(cell.get_parameter(HIDDEN)) if dropout is not None and dropout.training else None


def check_recurrent(d_model: int, d_hidden: int | None, project: bool, weight_dropout: float) -> None:
    check(0 <= weight_dropout < 1, f"weight_dropout must lie in [0, 1), found {weight_dropout}")
    check(d_model > 0, f"d_model must be positive, found {d_model}")
    check(d_hidden is None or d_hidden > 0, f"d_hidden must be positive, found {d_hidden}")
    same = d_hidden in (None, d_model)
    check(project or same, f"d_hidden {d_hidden} differs from d_model {d_model}: set project=true")
