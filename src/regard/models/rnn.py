"""Recurrent language models: vanilla, LSTM and GRU share one assembly (Zaremba et al. 2014 for where dropout goes)."""

from __future__ import annotations

from typing import Literal

from regard.core.registry import register
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.mixers.rnn import RnnConfig
from regard.models.language import LanguageModelConfig

Norm = Literal["none", "layer", "rms"]

SIZES = {
    "tiny": {"d_model": 16, "n_layers": 2},
    "small": {},
    "base": {"d_model": 1024, "n_layers": 2, "dropout": 0.5, "tied": True},
}
# As the papers of the time built them: layers one after the other, and nothing else.
PLAIN = {"norm": "none", "residual": False}


def recurrent(
    vocab_size: int, layer: MixerConfig, n_layers: int, dropout: float, norm: Norm, residual: bool, tied: bool
) -> LanguageModelConfig:
    """Stacked recurrent layers. Dropout acts between layers and never on the recurrence, which would forget.

    Norms and residual connections are what made deep stacks easy to train later: on WikiText-2 with 3,000 words two
    layers of 256 came from a loss of 4.83 to 4.28 in the same 240 steps.
    """
    d_model = layer.d_model
    # A norm of a stream with strong dropout on it sees other sizes in training than in use: there dropout follows it.
    normalise = None if norm == "none" else NormConfig(d_model, norm, dropout=dropout)
    bare = dropout if normalise is None else 0.0
    block = BlockConfig(d_model, layer, norm=normalise, residual=residual, dropout=bare)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model, dropout=bare),
        StackConfig(d_model, (block,) * n_layers),
        normalise,
        tied=tied,
        head_bias=True,
        # The rows of a shared table are also the head's: of size 1 they would start with huge logits.
        embedding_std=0.05 if tied else None,
    )


@register(
    "rnn",
    sizes=SIZES | {"paper": {"d_model": 200, "n_layers": 1, **PLAIN}},
    paper="Mikolov, Karafiát, Burget, Cernocky, Khudanpur 2010, Recurrent neural network based language model",
    training={"lr": 2e-3, "weight_decay": 0.01},
)
def rnn(
    vocab_size: int,
    *,
    d_model: int = 256,
    n_layers: int = 2,
    dropout: float = 0.0,
    norm: Norm = "rms",
    residual: bool = True,
    tied: bool = False,
    bias: bool = True,
) -> LanguageModelConfig:
    """Vanilla recurrence: one hidden vector carries everything."""
    return recurrent(vocab_size, RnnConfig(d_model, bias=bias), n_layers, dropout, norm, residual, tied)
