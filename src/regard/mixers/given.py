"""A vector given to a recurrence: the whole memory as one summary, in the first state or at every step.

    v = q(m_1 .. m_S)                          the summary, see layers/pooling.py
    s_0 = tanh(W v + b)                        first: the state that the recurrence begins with   Sutskever et al. 2014
    s_0 = v                                    first and handed: the same without a map
    y = mixer(x_t + U v)                       every: added to each input                         Cho et al. 2014

All that the recurrence can know of the memory has to pass through v: the bottleneck that attention removes.

Glossary
m_j  vectors of the memory    q  how they become one    v  that one
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig, StackConfig, inherit_facts
from regard.core.state import State
from regard.core.tap import Tap
from regard.layers.pooling import PoolingConfig, PoolingName
from regard.mixers.lstm import LstmConfig
from regard.mixers.rnn import RnnConfig


@dataclass(frozen=True)
class GivenState(State):
    """inner: of the recurrence. vector (B, D): the summary; D is 0 before a memory was met.

    Rows that have met one, inserted among rows that have not, give all of them their width.
    """

    inner: State
    vector: Tensor

    @property
    def position(self) -> Tensor:
        return self.inner.position

    def insert(self, rows: Tensor, other: State) -> GivenState:
        assert isinstance(other, GivenState)
        width = other.vector.shape[1]
        if width == 0 < self.vector.shape[1]:
            raise ValueError("a row must have met its memory before it is inserted among rows that have met theirs")
        vector = self.vector if self.vector.shape[1] else self.vector.new_zeros(len(self.vector), width)
        vector = vector.index_copy(0, rows, other.vector.to(vector.dtype))
        return GivenState(self.inner.insert(rows, other.inner), vector)


@dataclass(frozen=True)
class GivenConfig(MixerConfig, kind="given"):
    """mixer: what is given the vector. d_memory: width of the memory, None for d_model. pooling: q.

    handed  the vector itself is the first state, of a recurrence that keeps one vector as wide.
    """

    mixer: MixerConfig
    d_memory: int | None = None
    first: bool = True
    every: bool = False
    pooling: PoolingName = "last"
    handed: bool = False

    def __post_init__(self) -> None:
        check(self.first or not self.handed, "a vector that is handed over is the first state: first must hold too")
        check(self.first or self.every, "a vector must be given somewhere: first, every, or both")
        same = self.mixer.d_model == self.d_model
        check(same, f"the mixer has width {self.mixer.d_model}, what gives it a vector {self.d_model}")

    def build(self) -> Given:
        return Given(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        stack = StackConfig(8, (LstmConfig(8), LstmConfig(8)))
        return {
            "given-first": cls(8, stack),
            "given-every": cls(8, RnnConfig(8), first=False, every=True, pooling="mean"),
            "given-both": cls(8, LstmConfig(8), every=True, pooling="attention"),
            "given-handed": cls(8, RnnConfig(8), handed=True),
        }


class Given(Mixer):
    """A mixer that is told the summary of a memory."""

    composed = skips_state = True

    def __init__(self, config: GivenConfig) -> None:
        super().__init__()
        self.mixer = config.mixer.build()
        inherit_facts(self, [self.mixer])
        check(not self.mixer.state_grows or not config.first, "a state that grows cannot begin with a vector")
        self.needs_memory, self.permutes = True, self.mixer.permutes and not config.first
        width = config.d_memory or config.d_model
        self.pooling = PoolingConfig(width, config.pooling).build()
        self.first_state = FirstState(self.mixer, width, handed=config.handed) if config.first else None
        self.vector_to_input = nn.Linear(width, config.d_model, bias=False) if config.every else None
        self.given = Tap(None)

    def init_state(self, batch_size: int) -> State:
        return GivenState(self.mixer.init_state(batch_size), self.zeros(batch_size, 0))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        met = self._met(self.init_state(x.shape[0]) if state is None else state, context)
        # From the beginning the inner state is needed only where it was made of the vector.
        before = None if state is None and self.first_state is None else met.inner
        y, inner = self.mixer(self._with_vector(x, met.vector), before, context)
        return y, None if state is None else dataclasses.replace(met, inner=inner)

    def _met(self, state: State, context: Context) -> GivenState:
        """The state that knows the memory's summary."""
        assert isinstance(state, GivenState)
        if state.vector.shape[1] == 0:
            if context.memory is None:
                raise ValueError("there is no memory to be given a vector of")
            vector = self.pooling(context.memory, context.memory_lengths)
            inner = state.inner if self.first_state is None else self.first_state(vector, state.inner)
            state = GivenState(inner, vector.to(state.vector.dtype))
        return dataclasses.replace(state, vector=self.given(state.vector))

    def _with_vector(self, x: Tensor, vector: Tensor) -> Tensor:
        return x if self.vector_to_input is None else x + self.vector_to_input(vector.to(x.dtype))[:, None]


class FirstState(nn.Module):
    """s_0 = tanh(W v + b) for every number that a state of constant size holds; handed: s_0 = v."""

    def __init__(self, mixer: Mixer, d_vector: int, *, handed: bool = False) -> None:
        super().__init__()
        self.shapes = [tensor.shape[1:] for tensor in mixer.init_state(1).tensors() if tensor.is_floating_point()]
        size = sum(shape.numel() for shape in self.shapes)
        check(
            not handed or size == d_vector,
            f"a vector of {d_vector} numbers cannot be handed over as a state of {size}: one layer that keeps one "
            f"vector, such as a gru, takes it",
        )
        self.vector_to_state = None if handed else nn.Linear(d_vector, size)

    def forward(self, vector: Tensor, state: State) -> State:
        """`state` before any token with its numbers replaced by what `vector` (B, D) says."""
        sizes = [shape.numel() for shape in self.shapes]
        numbers = vector if self.vector_to_state is None else torch.tanh(self.vector_to_state(vector))
        parts = iter(numbers.split(sizes, -1))
        shapes = iter(self.shapes)

        def replaced(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point():
                return tensor
            return next(parts).unflatten(-1, next(shapes)).to(tensor.dtype)

        return state.map(replaced)
