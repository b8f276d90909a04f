"""Vanilla recurrent language model (Mikolov et al. 2010)."""

from __future__ import annotations

from regard.core.registry import register
from regard.mixers.rnn import RnnConfig
from regard.models.language import LanguageModelConfig
from regard.models.recurrent import PLAIN, SIZES, Assembly, Norm, recurrent


@register(
    "rnn",
    sizes=SIZES | {"paper": {"d_model": 200, "n_layers": 1, **PLAIN}},
    paper="Mikolov, Karafiát, Burget, Cernocky, Khudanpur 2010, Recurrent neural network based language model",
    training={"lr": 4e-3, "weight_decay": 0.01},
    rate_power=0.0,
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
    return recurrent(vocab_size, RnnConfig(d_model, bias=bias), Assembly(n_layers, norm, residual, tied, dropout))
