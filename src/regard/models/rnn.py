"""Recurrent language models: vanilla, LSTM and GRU share one assembly (Zaremba et al. 2014 for where dropout goes)."""

from __future__ import annotations

from regard.core.registry import register
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.mixers.rnn import RnnConfig
from regard.models.language import LanguageModelConfig

SIZES = {
    "tiny": {"d_model": 16, "n_layers": 2},
    "small": {},
    "base": {"d_model": 1024, "n_layers": 2, "dropout": 0.5, "tied": True},
}


def recurrent(
    vocab_size: int, layer: MixerConfig, n_layers: int, dropout: float, residual: bool, tied: bool
) -> LanguageModelConfig:
    """Stacked recurrent layers. Dropout acts between layers and never on the recurrence, which would forget."""
    d_model = layer.d_model
    first = BlockConfig(d_model, layer, residual=False, dropout=dropout)
    later = BlockConfig(d_model, layer, residual=residual, dropout=dropout)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model, dropout=dropout),
        StackConfig(d_model, (first, *[later] * (n_layers - 1))),
        tied=tied,
        head_bias=True,
        # The rows of a shared table are also the head's: of size 1 they would start with huge logits.
        embedding_std=0.05 if tied else None,
    )


@register(
    "rnn",
    sizes=SIZES | {"paper": {"d_model": 200, "n_layers": 1}},
    paper="Mikolov, Karafiát, Burget, Cernocky, Khudanpur 2010, Recurrent neural network based language model",
    training={"lr": 2e-3, "weight_decay": 0.01},
)
def rnn(
    vocab_size: int,
    *,
    d_model: int = 256,
    n_layers: int = 2,
    dropout: float = 0.0,
    residual: bool = False,
    tied: bool = False,
    bias: bool = True,
) -> LanguageModelConfig:
    """Vanilla recurrence: one hidden vector carries everything."""
    return recurrent(vocab_size, RnnConfig(d_model, bias=bias), n_layers, dropout, residual, tied)
