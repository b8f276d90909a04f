"""Sequence to sequence through one vector (Sutskever et al. 2014; Cho et al. 2014).

The encoder's last vector is all that the decoder learns of the source: as its first state, at every step, or both.
"""

from __future__ import annotations

from typing import Literal

from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.pooling import PoolingName
from regard.mixers.given import GivenConfig
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.rnn import RnnConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.language import LanguageModelConfig

CELLS = {"rnn": RnnConfig, "lstm": LstmConfig, "gru": GruConfig}


def source_vocabulary(spec: DataSpec, shared: bool) -> int:
    """Tokens of the side that is read."""
    return spec.vocab_size if shared or spec.source_vocab_size is None else spec.source_vocab_size


def can_share(spec: DataSpec) -> bool:
    """Whether both sides have one vocabulary."""
    return spec.source_vocab_size is None


@register(
    "seq2seq",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2},
        "small": {},
        "base": {"d_model": 512, "n_layers": 2, "dropout": 0.3},
        "paper": {"d_model": 1000, "n_layers": 4, "dropout": 0.0, "reverse": True, "give": "first"},
    },
    paper="Sutskever, Vinyals, Le 2014, Sequence to sequence learning with neural networks",
    parameters=(384_000_000, DataSpec(vocab_size=80_000, source_vocab_size=160_000)),
    training={"lr": 2e-3, "weight_decay": 0.01},
    task="pairs",
)
def seq2seq(
    spec: DataSpec,
    *,
    d_model: int = 256,
    n_layers: int = 1,
    dropout: float = 0.1,
    cell: Literal["rnn", "lstm", "gru"] = "lstm",
    encoder: str = "lstm",
    bidirectional: bool = False,
    reverse: bool = False,
    give: Literal["first", "every", "both"] = "both",
    pooling: PoolingName = "last",
    handed: bool = False,
) -> EncoderDecoderConfig:
    """A recurrence reads, one vector remembers, a second recurrence writes.

    handed  its first state is that vector itself, without a map between them.
    """
    source = EncoderStack(encoder, d_model, n_layers, dropout=dropout, bidirectional=bidirectional, residual=False)
    layer = BlockConfig(d_model, CELLS[cell](d_model), residual=False, dropout=dropout)
    layers: MixerConfig = StackConfig(d_model, (layer,) * n_layers)
    given = GivenConfig(d_model, layers, first=give != "every", every=give != "first", pooling=pooling, handed=handed)
    decoder = LanguageModelConfig(EmbeddingConfig(spec.vocab_size, d_model, dropout=dropout), given, head_bias=True)
    read = source.config(source_vocabulary(spec, False), reverse=reverse)
    return EncoderDecoderConfig(read, decoder)
