"""Mixer: the only thing that moves information between positions.

A mixer maps a chunk of vectors and a state to a chunk of vectors and a state:

    y, state = mixer(x, state, context)      any chunk length, from any state
    y, _ = mixer(x)                          from the beginning; no state in means that none is kept
    y_t, state = mixer.step(x_t, state)      its one-token case

A subclass writes `init_state` and either `forward` or `step`; the other is derived here. Fast mixers write both, and
the laws (`regard check`) hold them to being equal. Every call goes through `nn.Module.__call__`, so that hooks, DDP,
`fully_shard` and `compile` see each module. A chunk of one token from a state is a step: that is how decoding enters.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.context import EMPTY, Context, blank_padding, pack, row_count, unpack
from regard.core.state import State, where_row
from regard.core.tap import anybody_listens

Called = tuple[Tensor, State | None]


def completed(forward: Callable[..., Called]) -> Callable[..., Called]:
    """The `forward` that a mixer writes, given what it may rely on: rows that are not packed unless it takes them so,
    zeros for padding, at least one token, and a state unless it says that it can do without one."""

    @functools.wraps(forward)
    def complete(self: Mixer, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        if context.offsets is not None and not self.takes_packed(state):
            padded, lengths = unpack(x, context.offsets)
            y, state = complete(self, padded, state, replace(context, lengths=lengths, offsets=None))
            return pack(y, lengths), state
        if x.shape[1] == 0 and not self.needs_memory:
            return x, state
        if not self.composed:
            x = blank_padding(x, context.lengths)
            if x.shape[1] == 1 and state is not None and self._steps(context):
                y, state = self.step(x[:, 0], state, context)
                return y[:, None], state
        if state is not None or self.skips_state:
            return forward(self, x, state, context)
        return forward(self, x, self.init_state(row_count(x, context)), context)[0], None

    return complete


# What a tap of a mixer, or of another part of a model, may mean.
#   attention  weights (B, H, T, S) of the positions of the same side, each row a sum of 1
#   alignment  the same of the vectors of a memory
#   values     what such weights bring, (B, S, G, K), heads H a multiple of G
#   gate       (B, T, units) from 0, shut, to 1, open
#   keep       a gate that is the share of the state which a token leaves
#   state      what is carried on after each token, (B, T, ...)
#   pooling    (B, T), what each position counts in a vector of the whole
#   neurons    (B, T, F), the hidden units of a net at each position
Meaning = Literal["attention", "alignment", "values", "gate", "keep", "state", "pooling", "neurons"]
Shows = Mapping[str, Meaning]


def scan(
    step: Callable[[Tensor, State, Context], tuple[Tensor, State]], x: Tensor, state: State, context: Context
) -> tuple[Tensor, State]:
    """The outputs (B, T, ...) of a step that is made at every token of x (B, T, D), and the state after them."""
    outputs = []
    for t in range(x.shape[1]):
        y_t, after = step(x[:, t], state, context)
        # A row whose real tokens have ended keeps its state.
        state = after if context.lengths is None else where_row(t < context.lengths, after, state)
        outputs.append(y_t)
    return torch.stack(outputs, 1), state


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
    skips_state  its `forward` takes None for a state and then saves the work of making one.
    packs        its `forward` takes sequences packed end to end (`context.offsets`), each from the beginning, and saves
                 the work of padding them. For every other mixer, from a state and where somebody listens they are made
                 rows with padding.

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
    skips_state: bool = False
    packs: bool = False
    shows: ClassVar[Shows] = {}
    writes_to_stream: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "forward" in vars(cls):
            cls.forward = completed(cls.forward)
            # What the forward of a parent takes, another need not.
            cls.packs = bool(vars(cls).get("packs", False))

    def init_state(self, batch_size: int) -> State:
        """The state before any token."""
        raise NotImplementedError(f"{type(self).__name__} must write init_state")

    @completed
    def forward(
        self, x: Float[Tensor, "B T D"], state: State | None = None, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T _"], State | None]:
        """A chunk of any length from any state. Derived from `step` when a subclass writes only that."""
        if type(self).step is Mixer.step:
            raise NotImplementedError(f"{type(self).__name__} must write forward or step")
        assert state is not None
        return scan(self.step, x, state, context)

    def step(
        self, x: Float[Tensor, "B D"], state: State, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B _"], State]:
        """One token. Derived from `forward` when a subclass writes only that."""
        if not self.causal:
            raise ValueError(f"{type(self).__name__} looks at the future (causal = False), so it has no step")
        chunk: Callable[..., Called] = self
        if type(self).step is not Mixer.step:
            # Asked for from a step that a subclass writes, to which the call itself would lead back.
            chunk = functools.partial(vars(type(self).forward)["__wrapped__"], self)
        y, after = chunk(x[:, None], state, replace(context, lengths=None))
        assert after is not None
        return y[:, 0], after

    def takes_packed(self, state: State | None) -> bool:
        """Whether sequences packed end to end are read as they are; who listens wants rows, each from its beginning."""
        return self.packs and state is None and not anybody_listens()

    def _steps(self, context: Context) -> bool:
        """Whether a chunk of one token is left to `step`; who listens wants it as a chunk, with an axis of time."""
        return type(self).step is not Mixer.step and context.lengths is None and not anybody_listens()

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
