"""The grader: any encoder, the mean of its vectors, and a grade for that; the model of the task of ordinal labels."""

from __future__ import annotations

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.layers.pooling import PoolingConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import LabellerConfig


@register(
    "grader",
    sizes={"tiny": {"d_model": 16}, "small": {}, "base": {"d_model": 384, "n_layers": 4, "dropout": 0.3}},
    training={"lr": 1e-3, "warmup": 0.1},
    task="ordinal",
)
def grader(
    spec: DataSpec,
    *,
    encoder: str = "retention",
    d_model: int = 128,
    n_layers: int = 1,
    n_heads: int = 2,
    dropout: float = 0.1,
    bidirectional: bool = True,
) -> LabellerConfig:
    """Any encoder, its vectors pooled into one, and a grade for that."""
    stack = EncoderStack(encoder, d_model, n_layers, n_heads, dropout, bidirectional)
    return LabellerConfig(
        stack.config(spec.vocab_size), d_model, spec.n_classes, PoolingConfig(d_model, "mean"), dropout
    )
