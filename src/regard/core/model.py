"""TokenModel: what decoding, scoring and evaluation know of a model.

    logits, state = model(tokens, state, context)

A neural model is `regard.models.language.LanguageModel`; a counting model obeys the same protocol with `fit` in the
place of gradients. Losses, sampling, search and metrics live outside models, each written once.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor

from regard.core.context import EMPTY, Context
from regard.core.state import State


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
