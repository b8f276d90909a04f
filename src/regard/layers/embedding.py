"""What a model reads, as vectors, with positions added when it wants them at the input.

    Embedding    x_t = E[w_t]                                      ids of tokens
    Numbers      x_j = W [u_(jP+1) ; .. ; u_(jP+P)] + b            numbers over time, P times to a patch

A patch, such as the 24 hours of a day, makes the sequence P times shorter and shows a layer the shape of a whole day at
once (Nie et al. 2023). Words with their spelling are read by layers/spelled.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.dropout import dropout
from regard.errors import UsageError
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig, check_width


@dataclass(frozen=True)
class EmbeddingConfig(Config, kind="embedding"):
    """A row for each of `vocab_size` tokens; `position` is added to it when given.

    scaled  rows are multiplied by sqrt(d_model), so that small rows, as a tied head wants them, stand beside positions
            of size 1 (Vaswani et al. 2017, 3.4).
    norm    of the sum, as in BERT.
    dropout on the vectors; `locked`: the same units at every position of a row.
    row_dropout  words that are gone from a whole batch while training, wherever they stand (Gal and Ghahramani 2016).
    """

    vocab_size: int
    d_model: int
    position: PositionConfig | None = None
    dropout: float = 0.0
    scaled: bool = False
    norm: NormConfig | None = None
    locked: bool = False
    row_dropout: float = 0.0

    def __post_init__(self) -> None:
        check(self.vocab_size > 0, f"vocab_size must be positive, found {self.vocab_size}")
        check(self.d_model > 0, f"d_model must be positive, found {self.d_model}")
        check_width(self.position, self.d_model)
        for name in ("dropout", "row_dropout"):
            check(0 <= getattr(self, name) < 1, f"{name} must lie in [0, 1), found {getattr(self, name)}")

    def build(self) -> Embedding:
        return Embedding(self)


class Embedding(nn.Module):
    """x_t = norm(E[w_t] (* sqrt(D)) (+ position)), the parts in brackets where asked for."""

    reads = "tokens"

    def __init__(self, config: EmbeddingConfig) -> None:
        super().__init__()
        self.token_to_vector = nn.Embedding(config.vocab_size, config.d_model)
        self.position = config.position.build() if config.position else None
        self.scale = config.d_model**0.5 if config.scaled else 1.0
        self.norm = config.norm.build() if config.norm else nn.Identity()
        self.dropout = dropout(config.dropout, config.locked)
        self.row_dropout = nn.Dropout(config.row_dropout) if config.row_dropout else None

    @property
    def max_length(self) -> int | None:
        """Tokens beyond which there are no positions; None without such a limit."""
        return self.position.max_length if self.position is not None else None

    def forward(
        self, tokens: Int[Tensor, "B T"], start: Int[Tensor, "B"] | Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        x = self.token_to_vector(tokens)
        if self.row_dropout is not None and self.training:
            # One draw for each word of the vocabulary; the table itself, which a tied head shares, stays whole.
            kept = self.row_dropout(x.new_ones(self.token_to_vector.num_embeddings))
            x = x * kept[tokens][..., None]
        if self.scale != 1.0:
            x = x * self.scale
        if self.position is not None:
            x = x + self.position(start, tokens.shape[1]).to(x.dtype)
        x = self.norm(x)
        if torch.is_autocast_enabled(x.device.type):
            # The residual stream has the type of what the layers write to it: half the bytes in every pass over it.
            x = x.to(torch.get_autocast_dtype(x.device.type))
        return self.dropout(x)


@dataclass(frozen=True)
class NumbersConfig(Config, kind="numbers"):
    """n_channels: numbers at each time. patch: P. position: added to each vector where given."""

    n_channels: int
    d_model: int
    patch: int = 1
    position: PositionConfig | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check(min(self.n_channels, self.d_model, self.patch) > 0, "n_channels, d_model and patch must be positive")
        check_width(self.position, self.d_model)
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    def build(self) -> Numbers:
        return Numbers(self)


class Numbers(nn.Module):
    """(B, S, C) to (B, S / P, D)."""

    reads = "numbers"

    def __init__(self, config: NumbersConfig) -> None:
        super().__init__()
        self.patch = config.patch
        self.patch_to_vector = nn.Linear(config.n_channels * config.patch, config.d_model)
        self.position = config.position.build() if config.position else None
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    @property
    def max_length(self) -> int | None:
        """Of a series none: how much is read is a setting of the data."""
        return None

    def forward(
        self, numbers: Float[Tensor, "B S C"], start: Int[Tensor, "B"] | Int[Tensor, "B T"]
    ) -> Float[Tensor, "B _ D"]:
        if numbers.shape[1] % self.patch:
            raise UsageError(f"a history of {numbers.shape[1]} steps does not divide into patches of {self.patch}")
        x = self.patch_to_vector(self.dropout(numbers).unflatten(1, (-1, self.patch)).flatten(2))
        return x if self.position is None else x + self.position(start, x.shape[1]).to(x.dtype)
