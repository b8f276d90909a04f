"""Pooling: one vector from the vectors of a sequence.

    last       h_T
    first      h_1, as BERT's [CLS]                                         Devlin et al. 2019
    mean, max  over the real positions, coordinate by coordinate
    attention  sum_t a_t h_t,  a = softmax_t(q . tanh(W h_t))               a learned query   Yang et al. 2016

A sequence without any vector gives zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import Config
from regard.core.context import blank_padding, real_tokens
from regard.core.mixer import Shows
from regard.core.tap import Tap
from regard.layers.score import softmax

PoolingName = Literal["last", "first", "mean", "max", "attention"]


@dataclass(frozen=True)
class PoolingConfig(Config, kind="pooling"):
    """form: which of the vectors, or which mean of them."""

    d_model: int
    form: PoolingName = "mean"

    def build(self) -> Pooling:
        return Pooling(self)


class Pooling(nn.Module):
    """(B, T, D) and the real lengths to (B, D)."""

    shows: ClassVar[Shows] = {"weights": "pooling"}

    def __init__(self, config: PoolingConfig) -> None:
        super().__init__()
        self.form = config.form
        if config.form == "attention":
            self.vector_to_key = nn.Linear(config.d_model, config.d_model)
            self.query = nn.Parameter(nn.init.normal_(torch.empty(config.d_model), std=config.d_model**-0.5))
        self.weights = Tap()

    def forward(self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B D"]:
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], x.shape[2])
        x, real = blank_padding(x, lengths), real_tokens(lengths, x)
        empty = ~real.any(1, keepdim=True)
        weights = self.weights(self._weights(x, real | empty))
        if self.form == "max":
            pooled = x.masked_fill(~(real | empty)[..., None], float("-inf")).amax(1)
        else:
            pooled = torch.einsum("BT,BTD->BD", weights, x)
        return pooled.masked_fill(empty, 0.0)

    def _weights(self, x: Tensor, real: Tensor) -> Tensor:
        """What each position counts, (B, T); of the largest coordinates there is no such number, and all count."""
        if self.form == "attention":
            return softmax(torch.tanh(self.vector_to_key(x)) @ self.query, real)
        if self.form in ("mean", "max"):
            return real.to(x.dtype) / real.sum(1, keepdim=True)
        place = real.sum(1) - 1 if self.form == "last" else torch.zeros(x.shape[0], dtype=torch.long, device=x.device)
        return (torch.arange(x.shape[1], device=x.device) == place[:, None]).to(x.dtype)
