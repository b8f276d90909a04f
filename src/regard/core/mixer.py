"""Mixer: the only thing that moves information between positions.

A mixer maps a chunk of vectors and a state to a chunk of vectors and a state:

    y, state = mixer(x, state, context)      any chunk length, from any state
    y_t, state = mixer.step(x_t, state)      its one-token case
    y = mixer(x)                             from the beginning; the state is dropped

A subclass writes `init_state` and either `forward` or `step`; the other is derived here. Fast mixers write both, and
the laws (`regard check`) hold them to being equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, overload

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.context import EMPTY, Context, blank_padding, pack, unpack
from regard.core.state import State, where_row

# What a tap of a mixer, or of another part of a model, may mean.
#   attention  weights (B, H, T, S) of the positions of the same side, each row a sum of 1
#   alignment  the same of the vectors of a memory
#   values     what such weights bring, (B, S, G, K), heads H a multiple of G
#   gate       (B, T, units) from 0, shut, to 1, open
#   keep       a gate that is the share of the state which a token leaves
#   state      what is carried on after each token, (B, T, ...)
#   pooling    (B, T), what each position counts in a vector of the whole
Meaning = Literal["attention", "alignment", "values", "gate", "keep", "state", "pooling"]
Shows = Mapping[str, Meaning]


class Mixer(nn.Module):
    """Base of all mixers.

    Declared facts, which the laws read:
    causal       y_t depends on x_1 .. x_t only.
    state_grows  the state's size grows with the tokens seen, as a key-value cache does.
    reach        how far back y_t feels x: y_t depends on x_(t-k) for every k < reach. None: without limit.
    chunk_sizes  internal chunk lengths, around which the laws choose their cuts.
    permutes     commutes with any permutation of the positions.
    needs_memory looks at the memory of the context, which its state remembers from the first call on.
    composed     made of mixers that it calls: padding is blanked where they are called.

    And of itself, which others ask instead of knowing it by its type:
    shows             the meaning of its taps by their names; a tap that is not named is for the
                      mixer's own equations.
    writes_to_stream  names of its linear maps whose outputs go to the residual stream, which start smaller in a deep
                      stack.

    What a call sees of padding are zeros, whatever it holds. The number types of a state stay what `init_state` made
    them: those of the parameters, and float32 at least (`dtype_of_sums`) for what adds up over a whole text.
    """

    causal: bool = True
    state_grows: bool = False
    reach: int | None = None
    chunk_sizes: tuple[int, ...] = ()
    permutes: bool = False
    needs_memory: bool = False
    composed: bool = False
    shows: ClassVar[Shows] = {}
    writes_to_stream: ClassVar[tuple[str, ...]] = ()

    def init_state(self, batch_size: int) -> State:
        """The state before any token."""
        raise NotImplementedError(f"{type(self).__name__} must write init_state")

    def forward(
        self, x: Float[Tensor, "B T D"], state: State, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T _"], State]:
        """A chunk of any length from any state. Derived from `step` when a subclass writes only that."""
        if type(self).step is Mixer.step:
            raise NotImplementedError(f"{type(self).__name__} must write forward or step")
        outputs = []
        for t in range(x.shape[1]):
            y_t, after = self.step(x[:, t], state, context)
            # A row whose real tokens have ended keeps its state.
            state = after if context.lengths is None else where_row(t < context.lengths, after, state)
            outputs.append(y_t)
        return torch.stack(outputs, 1), state

    def step(
        self, x: Float[Tensor, "B D"], state: State, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B D"], State]:
        """One token. Derived from `forward` when a subclass writes only that."""
        if not self.causal:
            raise ValueError(f"{type(self).__name__} looks at the future (causal = False), so it has no step")
        y, state = self.forward(x[:, None], state, without_lengths(context))
        return y[:, 0], state

    def outputs(self, x: Float[Tensor, "B T D"], context: Context = EMPTY) -> Float[Tensor, "B T _"]:
        """The outputs from the beginning, when nobody needs the final state. Override to save the work of making it."""
        return self.forward(x, self.init_state(x.shape[0]), context)[0]

    @overload
    def __call__(self, x: Tensor, state: None = None, context: Context = EMPTY) -> Tensor: ...
    @overload
    def __call__(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]: ...
    def __call__(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Any:
        if context.offsets is not None:
            padded, lengths = unpack(x, context.offsets)
            inner = Context(lengths=lengths, memory=context.memory, memory_lengths=context.memory_lengths)
            if state is None:
                return pack(self(padded, None, inner), lengths)
            y, state = self(padded, state, inner)
            return pack(y, lengths), state
        if x.shape[1] == 0 and not self.needs_memory:
            return x if state is None else (x, state)
        if not self.composed:
            x = blank_padding(x, context.lengths)
        if state is None:
            return self.outputs(x, context)
        return super().__call__(x, state, context)

    def device_of_state(self) -> torch.device | None:
        """Where new states live: with the first parameter or buffer, or on the default device without any."""
        tensor = next(self.parameters(), None)
        if tensor is None:
            tensor = next(self.buffers(), None)
        return None if tensor is None else tensor.device

    def dtype_of_state(self) -> torch.dtype:
        """The number type of new states: that of the first parameter or buffer, or the default one without any."""
        held = itertools.chain(self.parameters(), self.buffers())
        tensor = next((tensor for tensor in held if tensor.is_floating_point()), None)
        return torch.get_default_dtype() if tensor is None else tensor.dtype

    def dtype_of_sums(self) -> torch.dtype:
        """The number type of what adds up over a text: float32 at least, as sums in half precision stop growing."""
        return torch.promote_types(self.dtype_of_state(), torch.float32)

    def zeros(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Zeros for a new state, on the device and in the number type of this mixer."""
        return torch.zeros(*shape, device=self.device_of_state(), dtype=dtype or self.dtype_of_state())


def without_lengths(context: Context) -> Context:
    """The context of a single step, whose one token is real in every row."""
    if context.lengths is None:
        return context
    return Context(memory=context.memory, memory_lengths=context.memory_lengths)
