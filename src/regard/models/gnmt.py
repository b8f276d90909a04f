"""GNMT (Wu et al. 2016): deep LSTMs on both sides, residual from the third layer on, attention from the bottom one."""

from __future__ import annotations

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.layers.embedding import EmbeddingConfig
from regard.mixers.gnmt import GnmtConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.language import LanguageModelConfig
from regard.models.seq2seq import can_share, source_vocabulary


@register(
    "gnmt",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 3},
        "small": {},
        "base": {"d_model": 512, "n_layers": 4, "dropout": 0.2},
        "paper": {"d_model": 1024, "n_layers": 8, "dropout": 0.2},
    },
    paper="Wu, Schuster, Chen et al. 2016, Google's neural machine translation system",
    parameters=(None, 32_000),
    training={"lr": 2e-3, "weight_decay": 0.01},
    task="pairs",
)
def gnmt(
    spec: DataSpec,
    *,
    d_model: int = 192,
    n_layers: int = 4,
    dropout: float = 0.1,
    encoder: str = "gnmt",
    shared: bool = True,
) -> EncoderDecoderConfig:
    """Deep LSTMs that read and write, the lowest of which looks and tells all others."""
    shared = shared and can_share(spec)
    read = EncoderStack(encoder, d_model, n_layers, dropout=dropout).config(source_vocabulary(spec, shared))
    stack = GnmtConfig(d_model, n_layers, dropout=dropout)
    embedding = EmbeddingConfig(spec.vocab_size, d_model, dropout=dropout)
    return EncoderDecoderConfig(read, LanguageModelConfig(embedding, stack, head_bias=True), shared)
