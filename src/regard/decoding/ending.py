"""When a text ends, and why it did."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from regard.core.model import TokenModel
from regard.errors import UsageError

Finish = Literal["eos", "stop", "length", "context"]


@dataclass(frozen=True)
class Limits:
    """When a text ends.

    max_tokens  tokens drawn at most.
    eos_id      the token that ends a text; None when there is none.
    stop        strings that end it; they need a streamer.
    slide       whether to go on with half the context when the window is full, or to end.
    window      tokens of context, where the model itself has no last position or a later one; None for no other limit.
    """

    max_tokens: int
    eos_id: int | None = None
    stop: tuple[str, ...] = ()
    slide: bool = True
    window: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.max_tokens, Integral) or self.max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, found {self.max_tokens}")

    def window_of(self, model: TokenModel) -> float:
        """Tokens of context that a state of `model` may hold."""
        return window_of(model, self.window)


def window_of(model: TokenModel, window: int | None = None) -> float:
    """Tokens of context that a state of `model` may hold, `window` at most; infinite without a limit."""
    return min(float(limit) for limit in (model.max_length, window, math.inf) if limit is not None)
