"""GRU language model (Cho et al. 2014 for the cell)."""

from __future__ import annotations

from typing import Literal

from regard.core.registry import register
from regard.mixers.gru import GruConfig
from regard.models.language import LanguageModelConfig
from regard.models.recurrent import PLAIN, SIZES, Assembly, Norm, recurrent


@register(
    "gru",
    sizes=SIZES | {"paper": {"d_model": 1000, "n_layers": 1, **PLAIN}},
    paper="Cho et al. 2014, Learning phrase representations using RNN encoder-decoder",
    parameters=(None, 15_000),
    training={"lr": 3e-3, "weight_decay": 0.01},
    rate_power=0.0,
)
def gru(
    vocab_size: int,
    *,
    d_model: int = 256,
    n_layers: int = 2,
    dropout: float = 0.0,
    norm: Norm = "rms",
    residual: bool = True,
    tied: bool = False,
    convention: Literal["torch", "cho"] = "torch",
) -> LanguageModelConfig:
    """Gated recurrence with one vector and two gates."""
    to = Assembly(n_layers, norm, residual, tied, dropout)
    return recurrent(vocab_size, GruConfig(d_model, convention=convention), to)
