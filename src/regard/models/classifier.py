"""The classifier: any encoder, a pooling and a head for labels; shape N-1."""

from __future__ import annotations

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.layers.pooling import PoolingConfig, PoolingName
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import LabellerConfig
from regard.models.linear_half import rows_for

EMBEDDING_STD = 0.1  # of words: at 1 a net learns its few thousand texts by heart before it moves them
SKIP = 2  # words between the two of a pair, in the half that is solved for
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
    encoder: str | None = None,
    pooling: PoolingName = "max",
    d_model: int = 128,
    n_layers: int = 1,
    n_heads: int = 4,
    dropout: float = 0.5,
    bidirectional: bool = True,
    linear: bool | None = None,
    letters: int = 0,
    piece: int = 128,
) -> LabellerConfig:
    """Any encoder, its vectors pooled into one, and a label for that; beside it a linear classifier over n-grams.

    encoder  None: an lstm.
    linear   the half that is solved for, where words come with their spelling and classes are not too many; None: where
             no encoder is named, so that a comparison of encoders compares encoders.
    piece    words of a long text that are read at a time (models/pieces.py); 0: all of them.
    letters  width of the vectors of bytes by which the net reads that spelling too; 0: it does not.
    """
    reader = EncoderStack(encoder or "lstm", d_model, n_layers, n_heads, dropout, bidirectional)
    read = reader.config(spec.vocab_size, spelled=spec.spelled, d_byte=letters)
    if read.init_std is None:
        read = read.replace(embedding_std=EMBEDDING_STD)
    has_half = (encoder is None if linear is None else linear) and spec.spelled
    columns = rows_for(spec.n_classes) if has_half else 0
    pooled = PoolingConfig(d_model, pooling)
    return LabellerConfig(
        read, d_model, spec.n_classes, pooled, dropout, linear=columns, skip=SKIP if columns else 0, piece=piece
    )
