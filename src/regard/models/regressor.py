"""The regressor: any encoder, a pooling and a head of one number; shape N-1."""

from __future__ import annotations

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.layers.number_head import NumberLoss
from regard.layers.pooling import PoolingConfig, PoolingName
from regard.models.classifier import SIZES
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import LabellerConfig


@register(
    "regressor",
    sizes=SIZES | {"paper": {"d_model": 256, "n_layers": 2, "pooling": "mean"}},
    paper="Taghipour, Ng 2016, A neural approach to automated essay scoring",
    training={"lr": 1e-3, "weight_decay": 0.01, "warmup": 0.1},
    task="regression",
)
def regressor(
    spec: DataSpec,
    *,
    encoder: str = "lstm",
    pooling: PoolingName = "attention",
    d_model: int = 128,
    n_layers: int = 1,
    n_heads: int = 4,
    dropout: float = 0.3,
    bidirectional: bool = True,
    loss: NumberLoss = "squared",
) -> LabellerConfig:
    """Any encoder, its vectors pooled into one, and a number for that."""
    reader = EncoderStack(encoder, d_model, n_layers, n_heads, dropout, bidirectional)
    words = reader.config(spec.vocab_size, spelled=spec.spelled)
    return LabellerConfig(words, d_model, 1, PoolingConfig(d_model, pooling), dropout, loss)
