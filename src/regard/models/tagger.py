"""The tagger: any encoder and a head for a tag at every word; shape N-N."""

from __future__ import annotations

from typing import Literal

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.models.classifier import SIZES
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import HeadName, LabellerConfig


@register(
    "tagger",
    sizes=SIZES | {"paper": {"d_model": 100, "n_layers": 1, "dropout": 0.5, "head": "crf"}},
    paper="Huang, Xu, Yu 2015, Bidirectional LSTM-CRF models for sequence tagging",
    parameters=(None, DataSpec(vocab_size=130_000, n_classes=9)),
    training={"lr": 2e-3, "weight_decay": 0.01, "warmup": 0.1, "ema": 0.99},
    task="tagged",
)
def tagger(
    spec: DataSpec,
    *,
    encoder: str = "lstm",
    d_model: int = 128,
    n_layers: int = 1,
    n_heads: int = 4,
    dropout: float = 0.3,
    bidirectional: bool = True,
    head: HeadName | Literal["auto"] = "auto",
) -> LabellerConfig:
    """Any encoder, and a tag for each of its vectors.

    head  auto: a crf where tags mark spans, whose words belong together, else linear.
    """
    chosen = head if head != "auto" else "crf" if spec.spans else "linear"
    reader = EncoderStack(encoder, d_model, n_layers, n_heads, dropout, bidirectional)
    words = reader.config(spec.vocab_size, spelled=True, n_forms=spec.n_forms)
    return LabellerConfig(words, d_model, spec.n_classes, None, dropout, chosen, spec.spans)
