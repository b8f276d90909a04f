"""RetNet (Sun et al. 2023): blocks of retention and a feed-forward net. A preset is assembly only."""

from __future__ import annotations

from regard.core.registry import register
from regard.core.stack import BlockConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.models.language import LanguageModelConfig
from regard_retention.retention import RetentionConfig


@register(
    "retnet",
    # No size `paper`: without the gates of the paper the number of parameters would be another.
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2, "n_heads": 2},
        "small": {},
        "base": {"d_model": 384, "n_layers": 6, "n_heads": 6, "dropout": 0.2},
    },
    paper="Sun et al. 2023, Retentive network: a successor to transformer for large language models",
    training={"lr": 2e-3},
)
def retnet(
    vocab_size: int, *, d_model: int = 128, n_layers: int = 4, n_heads: int = 4, dropout: float = 0.0
) -> LanguageModelConfig:
    """Attention without a softmax, whose weights fade with distance."""
    norm = NormConfig(d_model, "rms")
    block = BlockConfig(
        d_model, RetentionConfig(d_model, n_heads), MlpConfig(d_model, 4 * d_model), norm, dropout=dropout
    )
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model, dropout=dropout),
        StackConfig(d_model, (block,) * n_layers),
        norm,
        tied=True,
        init_std=0.02,
    )
