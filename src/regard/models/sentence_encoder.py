"""The sentence encoder: a Transformer that looks both ways and gives one vector for a text (Reimers, Gurevych 2019).

    e = pool(h_1 .. h_n), of length 1 where `normalised`

It is what is left of a masked language model without its head: it fills in nothing, and tells how near texts are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.errors import UsageError
from regard.layers.pooling import PoolingConfig, PoolingName
from regard.models.language import LanguageModel, LanguageModelConfig


@dataclass(frozen=True)
class SentenceEncoderConfig(LanguageModelConfig, kind="sentence_encoder"):
    """pooling: of the vectors of a text. normalised: to vectors of length 1."""

    pooling: PoolingName = "mean"
    normalised: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check(not self.tied and self.transform is None, "a sentence encoder has no head: leave out tied and transform")

    def build(self) -> SentenceEncoder:
        return SentenceEncoder(self)


class SentenceEncoder(LanguageModel):
    """Vectors of every token as of a language model, and the one of a text."""

    config: SentenceEncoderConfig

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__(config)
        self.pooling = PoolingConfig(config.embedding.d_model, config.pooling).build()

    def made_head(self) -> NoHead:  # pyright: ignore[reportIncompatibleMethodOverride]  # none is there
        return NoHead()

    def embed(self, tokens: Int[Tensor, "B T"], context: Context = EMPTY) -> Float[Tensor, "B D"]:
        """The vector of each text."""
        pooled = self.pooling(self.encode(tokens, context), context.lengths)
        return F.normalize(pooled, dim=-1) if self.config.normalised else pooled


class NoHead(nn.Module):
    """The head of a model that has no answers: logits of no class, so that what comes before it can be looked at."""

    n_answers = 0

    def forward(self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0) -> Tensor:
        if targets is not None:
            raise UsageError("the model has no head to learn with; start another task from it with --from")
        return vectors[..., :0]
