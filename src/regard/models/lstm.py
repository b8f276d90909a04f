"""LSTM language model (Zaremba et al. 2014)."""

from __future__ import annotations

from regard.core.registry import register
from regard.mixers.lstm import LstmConfig
from regard.models.language import LanguageModelConfig
from regard.models.rnn import PLAIN, SIZES, Norm, recurrent


@register(
    "lstm",
    sizes=SIZES | {"paper": {"d_model": 1500, "n_layers": 2, "dropout": 0.65, **PLAIN}},
    paper="Zaremba, Sutskever, Vinyals 2014, Recurrent neural network regularization",
    parameters=(66_034_000, 10_000),
    training={"lr": 3e-3, "weight_decay": 0.01},
)
def lstm(
    vocab_size: int,
    *,
    d_model: int = 256,
    n_layers: int = 2,
    dropout: float = 0.0,
    norm: Norm = "rms",
    residual: bool = True,
    tied: bool = False,
) -> LanguageModelConfig:
    """Gated recurrence: a cell that is kept and an output that is shown."""
    return recurrent(vocab_size, LstmConfig(d_model), n_layers, dropout, norm, residual, tied)
