"""What training, decoding, scoring and evaluation know of a model.

    vectors, state = model(inputs, state, context)      one call for every shape; no state in means that none is kept
    logits = model.head(vectors)                        what the vectors say, where it is asked for
    loss = model.head(vectors, targets)                 the summed loss, without all logits at once

A neural model's vectors are those of its last layer. A counting model obeys the same protocol with `fit` in the place
of gradients: what it gives are log-probabilities already, and its head passes them on. Losses, sampling, search and
metrics live outside models, each written once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from regard.core.context import EMPTY, Context, pack, unpack
from regard.core.inputs import Inputs
from regard.core.state import State
from regard.core.tap import Traced

Called = tuple[Tensor, State | None]


class Head(Protocol):
    """Vectors to answers: logits, or quantiles; with targets to the summed loss of the answers that count.

    n_answers  classes, or quantiles.
    """

    @property
    def n_answers(self) -> int: ...

    def __call__(self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0) -> Tensor: ...


class Model(Protocol):
    """What a training step calls."""

    training: bool

    @property
    def head(self) -> Head: ...

    def __call__(self, inputs: Inputs, state: State | None = None, context: Context = EMPTY) -> Called: ...


class TokenModel(Protocol):
    """Tokens (B, T) and a state to vectors (B, T, D), of which the head makes the logits (B, T, V) of the next tokens.

    max_length: positions beyond which the model is undefined, None without such a limit.
    """

    @property
    def vocab_size(self) -> int: ...

    @property
    def max_length(self) -> int | None: ...

    @property
    def head(self) -> Callable[..., Tensor]: ...

    def init_state(self, batch_size: int) -> State: ...

    def __call__(self, tokens: Tensor, state: Any = None, context: Context = EMPTY) -> tuple[Tensor, Any]: ...


@runtime_checkable
class TokenEncoder(Protocol):
    """A model that gives the vectors of tokens alone, (B, T, D), as they are before any pooling or head."""

    def encode(self, tokens: Tensor, context: Context = EMPTY) -> Tensor: ...


@runtime_checkable
class Embeds(Protocol):
    """A model that gives one vector for a text."""

    def embed(self, tokens: Tensor, context: Context = EMPTY) -> Tensor:
        """Tokens (B, T) to vectors (B, D)."""
        ...


def logits_of(model: Any, inputs: Inputs, state: State | None = None, context: Context = EMPTY) -> Tensor:
    """The answers of a model to all that it reads."""
    return model.head(model(inputs, state, context)[0])


class StatefulModel(Traced):
    """Base of models whose `forward` always has a state, never meets packed rows, and gives log-probabilities.

    A subclass writes `init_state` and `forward(tokens, state, context)`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Identity()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "forward" in vars(cls):
            cls.forward = _completed(cls.forward)

    def init_state(self, batch_size: int) -> State:
        """The state before any token."""
        raise NotImplementedError(f"{type(self).__name__} must write init_state")


def _completed(forward: Callable[..., Called]) -> Callable[..., Called]:
    @functools.wraps(forward)
    def complete(self: StatefulModel, tokens: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        if context.offsets is not None:
            padded, lengths = unpack(tokens, context.offsets)
            y, state = complete(self, padded, state, replace(context, lengths=lengths, offsets=None))
            return pack(y, lengths), state
        if state is None:
            return forward(self, tokens, self.init_state(len(tokens)), context)[0], None
        return forward(self, tokens, state, context)

    return complete
