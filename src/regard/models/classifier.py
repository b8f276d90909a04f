"""The classifier: any encoder, a pooling and a head for labels; shape N-1."""

from __future__ import annotations

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.layers.pooling import PoolingConfig, PoolingName
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import LabellerConfig

SIZES = {
    "tiny": {"d_model": 16, "n_layers": 2, "n_heads": 2},
    "small": {},
    "base": {"d_model": 384, "n_layers": 4, "n_heads": 6, "dropout": 0.3},
}


@register(
    "classifier",
    sizes=SIZES | {"paper": {"encoder": "dan", "d_model": 300, "n_layers": 3, "pooling": "last"}},
    paper="Iyyer, Manjunatha, Boyd-Graber, Daumé 2015, Deep unordered composition rivals syntactic methods",
    training={"lr": 1e-3, "weight_decay": 0.01, "warmup": 0.1},
    task="labelled",
)
def classifier(
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
    """Any encoder, its vectors pooled into one, and a label for that."""
    reader = EncoderStack(encoder, d_model, n_layers, n_heads, dropout, bidirectional)
    pool = PoolingConfig(d_model, pooling)
    return LabellerConfig(reader.config(spec.vocab_size, spelled=spec.spelled), d_model, spec.n_classes, pool, dropout)
