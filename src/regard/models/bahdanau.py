"""RNNsearch (Bahdanau et al. 2014): the decoder searches the source before every word that it writes."""

from __future__ import annotations

from typing import Literal

from regard.core.bidirectional import BidirectionalConfig
from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.core.stack import StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.layers.score import ScoreName
from regard.mixers.attentive import AttentiveConfig, CellName
from regard.mixers.gru import GruConfig
from regard.models.encoder import EncoderConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.language import LanguageModelConfig
from regard.models.seq2seq import source_vocabulary

PAPER = {
    "d_model": 620,
    "d_hidden": 1000,
    "dropout": 0.0,
    "cell": "gru-cho",
    "readout": "maxout",
    "shows": "before",
    "d_readout": 500,
    "first": "backward",
}


@register(
    "bahdanau",
    sizes={
        "tiny": {"d_model": 16},
        "small": {},
        "base": {"d_model": 512, "dropout": 0.3},
        "paper": PAPER,
    },
    paper="Bahdanau, Cho, Bengio 2014, Neural machine translation by jointly learning to align and translate",
    parameters=(None, 30_000),
    training={"lr": 2e-3, "weight_decay": 0.01},
    task="pairs",
)
def bahdanau(
    spec: DataSpec,
    *,
    d_model: int = 256,
    d_hidden: int | None = None,
    n_layers: int = 1,
    dropout: float = 0.1,
    cell: CellName = "gru",
    encoder: str = "gru",
    score: ScoreName = "additive",
    readout: Literal["maxout", "tanh"] = "tanh",
    shows: Literal["before", "after"] = "after",
    d_readout: int | None = None,
    first: Literal["both", "backward"] = "both",
) -> EncoderDecoderConfig:
    """A recurrence that looks for what it needs in the source, word by word: soft alignment."""
    vocabulary = source_vocabulary(spec, False)
    if encoder == "gru" and n_layers == 1:
        # As in the paper: both directions side by side are what is looked at.
        width = d_hidden or d_model
        convention = "cho" if cell == "gru-cho" else "torch"
        both = BidirectionalConfig(width, GruConfig(width, d_input=d_model, convention=convention), project=False)
        embedding = EmbeddingConfig(vocabulary, d_model, dropout=dropout)
        read = EncoderConfig(embedding, StackConfig(width, (both,)), _normalised(2 * width, dropout))
        d_memory = 2 * width
    else:
        read = EncoderStack(encoder, d_model, n_layers, dropout=dropout).config(vocabulary)
        d_memory = d_model
    stack = AttentiveConfig(
        *(d_model, cell, d_hidden, d_memory),
        score=score,
        readout=readout,
        shows=shows,
        d_readout=d_readout,
        first=first,
    )
    embedding = EmbeddingConfig(spec.vocab_size, d_model, dropout=dropout)
    norm = _normalised(d_readout or d_model, dropout)
    return EncoderDecoderConfig(read, LanguageModelConfig(embedding, stack, norm, head_bias=True, d_head=d_readout))


def _normalised(width: int, dropout: float) -> NormConfig | None:
    """Dropout wants vectors of a settled size; the paper has neither."""
    return NormConfig(width, dropout=dropout) if dropout else None
