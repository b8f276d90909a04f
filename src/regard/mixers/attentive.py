"""A recurrence that looks at a memory before every step (Bahdanau et al. 2014, 3.1 and A.2).

    c_t = sum_j alpha_tj h_j                     alpha_t = softmax_j score(s_(t-1), h_j), see mixers/cross.py
    s_t = f(s_(t-1), [x_t ; c_t])                f is a vanilla, LSTM or GRU cell
    s_0 = tanh(W q(h_1 .. h_S))                  the paper's q is the backward half of h_1

What is shown of a step, y_t, depends on state, input and context:

    maxout   y = max over pairs of (U s + V x + C c)          as in the paper, with s = s_(t-1)
    tanh     y = tanh(U s + V x + C c)                        Luong et al. 2015, equation 5, with s = s_t

The query needs the state of the step before, so that a sequence is a loop of steps also in training.

Glossary
h_j    vectors of the memory     s_t  hidden state of the cell     c_t  context     x_t  input, the last word's vector
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context, real_tokens
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import State, where_row
from regard.layers.pooling import PoolingConfig, PoolingName
from regard.layers.score import ScoreName
from regard.mixers.cross import CrossAttentionConfig
from regard.mixers.given import FirstState
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.memory import MemoryState
from regard.mixers.rnn import RnnConfig

CellName = Literal["rnn", "lstm", "gru", "gru-cho"]


@dataclass(frozen=True)
class AlignedState(State):
    """cell: of the recurrence. memory: keys and values of what is looked at."""

    cell: State
    memory: State

    @property
    def position(self) -> Tensor:
        return self.cell.position


@dataclass(frozen=True)
class AttentiveConfig(MixerConfig, kind="attentive"):
    """A cell with a look at the memory before every step, and what is shown of it.

    d_hidden    of the cell, None for d_model.
    d_memory    width of the memory, None for d_model.
    d_score     width K of the score's queries and keys, None for d_hidden.
    readout     y by maxout or by tanh.
    shows       which state the readout sees: that before the step or that after it.
    pooling     q, what the first state is made of.
    d_readout   width of y, None for d_model.
    first       what of q: both halves, or the second one, which a backward recurrence beside a forward one has written.
    """

    cell: CellName = "gru"
    d_hidden: int | None = None
    d_memory: int | None = None
    d_score: int | None = None
    score: ScoreName = "additive"
    readout: Literal["maxout", "tanh"] = "tanh"
    shows: Literal["before", "after"] = "after"
    pooling: PoolingName = "first"
    d_readout: int | None = None
    first: Literal["both", "backward"] = "both"

    def __post_init__(self) -> None:
        for name in ("d_model", "d_hidden", "d_memory", "d_score", "d_readout"):
            value = getattr(self, name)
            check(value is None or value > 0, f"{name} must be positive, found {value}")

    def build(self) -> Attentive:
        return Attentive(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {
            "attentive": cls(8),
            "attentive-paper": cls(
                8, "gru-cho", 6, d_score=5, readout="maxout", shows="before", d_readout=7, first="backward"
            ),
            "attentive-lstm": cls(8, "lstm", 6, score="scaled_dot", pooling="last"),
            "attentive-rnn": cls(8, "rnn", score="dot", pooling="mean"),
        }


class AlignedCell(nn.Module):
    """The recurrence itself: hidden states and contexts of every step."""

    def __init__(self, config: AttentiveConfig) -> None:
        super().__init__()
        width, memory = config.d_hidden or config.d_model, config.d_memory or config.d_model
        self.cell = cell_config(config.cell, width, config.d_model + memory).build()
        self.attention = CrossAttentionConfig(
            width,
            d_memory=memory,
            d_head=config.d_score or width,
            score=config.score,
            project_values=False,
            project_output=False,
        ).build()
        self.pooling = PoolingConfig(memory, config.pooling).build()
        self.n_left_out = memory // 2 if config.first == "backward" else 0
        self.first_state = FirstState(self.cell, memory - self.n_left_out)

    def init_state(self, batch_size: int) -> AlignedState:
        return AlignedState(self.cell.init_state(batch_size), self.attention.init_state(batch_size))

    def met(self, state: State, context: Context) -> AlignedState:
        """The state that has seen the memory."""
        assert isinstance(state, AlignedState)
        assert isinstance(state.memory, MemoryState)
        if state.memory.keys.shape[1] > 0:
            return state
        if context.memory is None:
            raise ValueError("the attention of a decoder was given no memory to look at")
        vector = self.pooling(context.memory, context.memory_lengths)[:, self.n_left_out :]
        memory = self.attention.remember(context.memory, context.memory_lengths, state.memory.count)
        return AlignedState(self.first_state(vector, state.cell), memory.typed_as(state.memory))

    def step(self, x: Tensor, state: AlignedState) -> tuple[Tensor, Tensor, Tensor, AlignedState]:
        """s_(t-1), s_t and c_t of one input (B, D), and the state."""
        before = hidden_of(state.cell)
        looked, memory = self.attention(before[:, None], state.memory)
        c = looked[:, 0].to(x.dtype)
        _, cell = self.cell(torch.cat([x, c], -1)[:, None], state.cell)
        return before, hidden_of(cell), c, AlignedState(cell, memory)

    def forward(
        self, x: Tensor, state: AlignedState, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, AlignedState]:
        """s_(t-1), s_t, c_t of every step, (B, T, ...), and the state after each row's real ones."""
        rows = []
        for t in range(x.shape[1]):
            *row, after = self.step(x[:, t], state)
            if lengths is not None:
                after = where_row(t < lengths, after, state)
            assert isinstance(after, AlignedState)
            state = after
            rows.append(row)
        before, hidden, context = (torch.stack(column, 1) for column in zip(*rows, strict=True))
        return before, hidden, context, state


class Attentive(Mixer):
    """The recurrence and its readout."""

    needs_memory = skips_state = True

    def __init__(self, config: AttentiveConfig) -> None:
        super().__init__()
        width, memory = config.d_hidden or config.d_model, config.d_memory or config.d_model
        self.aligned = AlignedCell(config)
        self.shows_before = config.shows == "before"
        self.is_maxout = config.readout == "maxout"
        self.d_readout = config.d_readout or config.d_model
        self.seen_to_output = nn.Linear(width + config.d_model + memory, self.d_readout * (2 if self.is_maxout else 1))

    def init_state(self, batch_size: int) -> State:
        return self.aligned.init_state(batch_size)

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        met = self.aligned.met(self.init_state(x.shape[0]) if state is None else state, context)
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], 0, self.d_readout), None if state is None else met
        # Without a state nobody reads what padding, which comes last, has done to it.
        before, hidden, looked, after = self.aligned(x, met, None if state is None else context.lengths)
        y = self._readout(before if self.shows_before else hidden, x, looked)
        return (y * real_tokens(context.lengths, y)[..., None], None) if state is None else (y, after)

    def _readout(self, s: Tensor, x: Tensor, c: Tensor) -> Tensor:
        mixed = self.seen_to_output(torch.cat([s, x, c], -1))
        return mixed.unflatten(-1, (-1, 2)).amax(-1) if self.is_maxout else torch.tanh(mixed)


def cell_config(name: CellName, d_hidden: int, d_input: int) -> MixerConfig:
    match name:
        case "rnn":
            return RnnConfig(d_hidden, d_input=d_input)
        case "lstm":
            return LstmConfig(d_hidden, d_input=d_input)
        case "gru":
            return GruConfig(d_hidden, d_input=d_input)
        case "gru-cho":
            return GruConfig(d_hidden, convention="cho", d_input=d_input)


def hidden_of(state: State) -> Tensor:
    """s of a recurrent cell's state: what it shows."""
    hidden = getattr(state, "hidden", None)
    assert isinstance(hidden, Tensor)
    return hidden
