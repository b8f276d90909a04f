"""Token ids to vectors, with positions added when the model wants them at the input."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig, check_width


@dataclass(frozen=True)
class EmbeddingConfig(Config, kind="embedding"):
    """A row for each of `vocab_size` tokens; `position` is added to it when given.

    scaled  rows are multiplied by sqrt(d_model), so that small rows, as a tied head wants them, stand beside positions
            of size 1 (Vaswani et al. 2017, 3.4).
    norm    of the sum, as in BERT.
    """

    vocab_size: int
    d_model: int
    position: PositionConfig | None = None
    dropout: float = 0.0
    scaled: bool = False
    norm: NormConfig | None = None

    def __post_init__(self) -> None:
        check(self.vocab_size > 0, f"vocab_size must be positive, found {self.vocab_size}")
        check(self.d_model > 0, f"d_model must be positive, found {self.d_model}")
        check_width(self.position, self.d_model)
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

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
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    @property
    def max_length(self) -> int | None:
        """Tokens beyond which there are no positions; None without such a limit."""
        return self.position.max_length if self.position is not None else None

    def forward(self, tokens: Int[Tensor, "B T"], start: Int[Tensor, "B"]) -> Float[Tensor, "B T D"]:
        x = self.token_to_vector(tokens)
        if self.scale != 1.0:
            x = x * self.scale
        if self.position is not None:
            x = x + self.position(start, tokens.shape[1]).to(x.dtype)
        return self.dropout(self.norm(x))
