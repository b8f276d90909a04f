"""The multilabeller: any encoder, a pooling and a chance for every label, each for itself; shape N-1."""

from __future__ import annotations

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.layers.pooling import PoolingConfig, PoolingName
from regard.models.classifier import SIZES
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import LabellerConfig


@register(
    "multilabeller",
    sizes=SIZES | {"paper": {"d_model": 256, "n_layers": 1, "pooling": "max"}},
    paper="Nam, Kim, Loza Mencía, Gurevych, Fürnkranz 2014, Large-scale multi-label text classification",
    training={"lr": 1e-3, "weight_decay": 0.01, "warmup": 0.1},
    task="multilabel",
)
def multilabeller(
    spec: DataSpec,
    *,
    encoder: str = "lstm",
    pooling: PoolingName = "attention",
    d_model: int = 128,
    n_layers: int = 1,
    n_heads: int = 4,
    dropout: float = 0.3,
    bidirectional: bool = True,
) -> LabellerConfig:
    """Any encoder, its vectors pooled into one, and a chance for every label."""
    reader = EncoderStack(encoder, d_model, n_layers, n_heads, dropout, bidirectional)
    words = reader.config(spec.vocab_size, spelled=spec.spelled)
    return LabellerConfig(words, d_model, spec.n_classes, PoolingConfig(d_model, pooling), dropout, "binary")
