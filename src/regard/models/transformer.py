"""The Transformer (Vaswani et al. 2017): attention within the source, within the target, and from one to the other."""

from __future__ import annotations

from typing import Literal

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.core.stack import BlockConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.linear import Activation
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.cross import CrossAttentionConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.encoder_stack import EncoderStack, InputPosition
from regard.models.language import LanguageModelConfig
from regard.models.seq2seq import can_share, source_vocabulary


@register(
    "transformer",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2, "n_heads": 2},
        "small": {},
        "base": {"d_model": 256, "n_layers": 6, "n_heads": 4, "dropout": 0.3},
        "paper": {"d_model": 512, "n_layers": 6, "n_heads": 8, "placement": "after"},
    },
    paper="Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin 2017, Attention is all you need",
    parameters=(65_000_000, 37_000),
    training={"lr": 2e-3, "label_smoothing": 0.1},
    task="pairs",
)
def transformer(
    spec: DataSpec,
    *,
    d_model: int = 128,
    n_layers: int = 3,
    n_heads: int = 4,
    d_hidden: int | None = None,
    dropout: float = 0.1,
    encoder: str = "transformer",
    shared: bool = True,
    tied: bool = True,
    norm: Literal["layer", "rms"] = "layer",
    placement: Literal["before", "after"] = "before",
    activation: Activation = "relu",
    position: InputPosition = "sinusoidal",
    max_length: int = 512,
) -> EncoderDecoderConfig:
    """Attention alone: every target position asks the target so far and all of the source."""
    shared = shared and can_share(spec)
    reader = EncoderStack(
        encoder, d_model, n_layers, n_heads, dropout, True, norm, placement, activation, position, max_length, d_hidden
    )
    read = reader.config(source_vocabulary(spec, shared), scaled=True)
    return EncoderDecoderConfig(read, attentive_decoder(reader, spec.vocab_size, tied), shared)


def attentive_decoder(like: EncoderStack, vocab_size: int, tied: bool = True) -> LanguageModelConfig:
    """The decoder of the same measures as an encoder: each layer asks the text so far, then the memory."""
    d_model, dropout, placement = like.d_model, like.dropout, like.placement
    normalise = NormConfig(d_model, like.norm)
    mlp = MlpConfig(d_model, like.d_hidden or 4 * d_model, like.activation)
    within = AttentionConfig(d_model, like.n_heads, dropout=dropout)
    across = CrossAttentionConfig(d_model, like.n_heads, dropout=dropout)
    layer = (
        BlockConfig(d_model, within, None, normalise, dropout=dropout, placement=placement),
        BlockConfig(d_model, across, mlp, normalise, dropout=dropout, placement=placement),
    )
    places = None if like.position == "none" else PositionConfig(d_model, like.position, like.max_length)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model, places, dropout, scaled=True),
        StackConfig(d_model, layer * like.n_layers),
        normalise if placement == "before" else None,
        tied=tied,
        # Rows of this size, scaled by sqrt(d_model) at the input, are of size 1 there and small in the head.
        embedding_std=d_model**-0.5,
    )
