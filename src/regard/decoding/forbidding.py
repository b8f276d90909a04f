"""A model that never says some tokens: padding, which is no part of a text, whatever a head says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.device import device_of
from regard.core.state import State


class Forbidding(nn.Module):
    """A TokenModel as another is, but for the probability of the `tokens`, which is 0."""

    def __init__(self, model: Any, tokens: Sequence[int]) -> None:
        super().__init__()
        self.model = model
        self.head = ForbiddingHead(model.head, tokens, device_of(model))

    @property
    def vocab_size(self) -> int:
        return self.model.vocab_size

    @property
    def max_length(self) -> int | None:
        return self.model.max_length

    @property
    def stack(self) -> Any:
        return self.model.stack

    def init_state(self, batch_size: int) -> State:
        return self.model.init_state(batch_size)

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        return self.model(tokens, state, context)


class ForbiddingHead(nn.Module):
    """Logits of which those of some tokens are -inf."""

    tokens: Tensor

    def __init__(self, head: nn.Module, tokens: Sequence[int], device: torch.device) -> None:
        super().__init__()
        self.head = head
        # Made once, where the logits are: a step that brings a number from the host cannot be captured.
        self.register_buffer("tokens", torch.tensor(tokens, device=device), persistent=False)

    @property
    def n_answers(self) -> int:
        return self.head.n_answers  # pyright: ignore[reportReturnType]  # of a Head

    def forward(self, vectors: Tensor) -> Tensor:
        return self.head(vectors).index_fill(-1, self.tokens, float("-inf"))
