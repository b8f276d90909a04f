"""The classifier: any encoder, a pooling and a head for labels; shape N-1."""

from __future__ import annotations

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.layers.pooling import PoolingConfig, PoolingName
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import LabellerConfig
from regard.models.linear_half import rows_for

EMBEDDING_STD = 0.1  # of words: at 1 a net learns its few thousand texts by heart before it moves them
SIZES = {
    "tiny": {"d_model": 16, "n_layers": 2, "n_heads": 2},
    "small": {},
    "base": {"d_model": 384, "n_layers": 4, "n_heads": 6, "dropout": 0.3},
}


@register(
    "classifier",
    sizes=SIZES | {"paper": {"encoder": "dan", "d_model": 300, "n_layers": 3, "pooling": "last"}},
    paper="Iyyer, Manjunatha, Boyd-Graber, Daumé 2015, Deep unordered composition rivals syntactic methods",
    training={"lr": 2e-3, "weight_decay": 0.1, "warmup": 0.1, "batch_size": 32, "ema": 0.99},
    task="labelled",
)
def classifier(
    spec: DataSpec,
    *,
    encoder: str = "lstm",
    pooling: PoolingName = "max",
    d_model: int = 128,
    n_layers: int = 1,
    n_heads: int = 4,
    dropout: float = 0.5,
    bidirectional: bool = True,
    linear: bool = True,
    letters: int = 0,
) -> LabellerConfig:
    """Any encoder, its vectors pooled into one, and a label for that; beside it a linear classifier over n-grams.

    linear   the half that is solved for, where words come with their spelling and classes are not too many.
    letters  width of the vectors of bytes by which the net reads that spelling too; 0: it does not.
    """
    reader = EncoderStack(encoder, d_model, n_layers, n_heads, dropout, bidirectional)
    read = reader.config(spec.vocab_size, spelled=spec.spelled, d_byte=letters)
    if read.init_std is None:
        read = read.replace(embedding_std=EMBEDDING_STD)
    columns = rows_for(spec.n_classes) if linear and spec.spelled else 0
    return LabellerConfig(read, d_model, spec.n_classes, PoolingConfig(d_model, pooling), dropout, linear=columns)
