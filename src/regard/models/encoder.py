"""The encoder: an embedding and a stack that turn a source into a memory, one vector for each of its positions.

    m_1 .. m_S = norm(stack(embedding(source)))

What the source is depends on the embedding alone: token ids (B, S), pictures (B, 3, H, W) or numbers (B, S, C).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.bidirectional import reverse
from regard.core.config import Config
from regard.core.context import Context
from regard.core.mixer import Mixer
from regard.core.stack import MixerConfig
from regard.errors import UsageError
from regard.models.language import check_deviations, initialise


@dataclass(frozen=True)
class EncoderConfig(Config, kind="encoder"):
    """Embedding, stack and an optional last norm.

    stack     None where the embedding itself has mixed the positions, as convolutions over a picture do.
    reverse   the source is read from its end to its beginning (Sutskever et al. 2014, 3.3).
    init_std, embedding_std  as of a language model.
    """

    embedding: Config
    stack: MixerConfig | None
    norm: Config | None = None
    reverse: bool = False
    init_std: float | None = None
    embedding_std: float | None = None

    def __post_init__(self) -> None:
        check_deviations(self.init_std, self.embedding_std)

    def build(self) -> Encoder:
        return Encoder(self)


class Encoder(nn.Module):
    """A source and its lengths to a memory and its lengths."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding: Any = config.embedding.build()
        self.stack: Mixer | None = config.stack.build() if config.stack else None
        self.norm = config.norm.build() if config.norm else nn.Identity()
        if config.init_std is not None:
            initialise(self, config.init_std)
        if config.embedding_std is not None:
            nn.init.normal_(self.embedding.token_to_vector.weight, std=config.embedding_std)

    @property
    def reads(self) -> str:
        """What a source is: tokens, words with their spelling, pictures or numbers."""
        return self.embedding.reads

    @property
    def max_length(self) -> int | None:
        """Source positions beyond which the encoder is undefined; None without such a limit."""
        return self.embedding.max_length or getattr(self.stack, "max_length", None)

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Float[Tensor, "B S D"], Tensor | None]:
        if self.max_length is not None and source.shape[1] > self.max_length:
            raise UsageError(
                f"a source of {source.shape[1]} tokens is above the {self.max_length} positions of the model"
            )
        if self.config.reverse:
            source = reverse(source, lengths)
        start = torch.zeros(source.shape[0], dtype=torch.long, device=source.device)
        x = self.embedding(source, start)
        if self.stack is not None:
            x, _ = self.stack(x, None, Context(lengths=lengths))
        return self.norm(x), lengths
