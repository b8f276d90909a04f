"""TokenModel: what decoding, scoring and evaluation know of a model.

    logits, state = model(tokens, state, context)

A neural model is `regard.models.language.LanguageModel`; a counting model obeys the same protocol with `fit` in the
place of gradients. Losses, sampling, search and metrics live outside models, each written once.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, overload, runtime_checkable

from torch import Tensor

from regard.core.context import EMPTY, Context, pack, unpack
from regard.core.state import State
from regard.core.trace import Traced


@runtime_checkable
class TokenModel(Protocol):
    """Next-token logits (B, T, V) from tokens (B, T) and a state.

    max_length: positions beyond which the model is undefined, None without such a limit.
    """

    @property
    def vocab_size(self) -> int: ...

    @property
    def max_length(self) -> int | None: ...

    def init_state(self, batch_size: int) -> State: ...

    def __call__(self, tokens: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]: ...


class StatefulModel(Traced):
    """Base of models whose `forward` always has a state and never meets packed rows.

    A subclass writes `init_state` and `forward(tokens, state, context)`. Called without a state the model begins with
    the first one and gives the logits alone.
    """

    def init_state(self, batch_size: int) -> State:
        """The state before any token."""
        raise NotImplementedError(f"{type(self).__name__} must write init_state")

    @overload
    def __call__(self, tokens: Tensor, state: None = None, context: Context = EMPTY) -> Tensor: ...
    @overload
    def __call__(self, tokens: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]: ...
    def __call__(self, tokens: Tensor, state: State | None = None, context: Context = EMPTY) -> Any:
        if context.offsets is not None:
            padded, lengths = unpack(tokens, context.offsets)
            context = dataclasses.replace(context, lengths=lengths, offsets=None)
            if state is None:
                return pack(self(padded, None, context), lengths)
            logits, after = self(padded, state, context)
            return pack(logits, lengths), after
        before = self.init_state(len(tokens)) if state is None else state
        logits, after = super().__call__(tokens, before, context)
        return logits if state is None else (logits, after)
