"""LSTM language model (Zaremba et al. 2014); with the settings of Merity et al. 2018 it is their AWD-LSTM."""

from __future__ import annotations

from regard.core.registry import register
from regard.mixers.lstm import LstmConfig
from regard.models.language import LanguageModelConfig
from regard.models.recurrent import PLAIN, SIZES, Assembly, Norm, recurrent


@register(
    "lstm",
    sizes=SIZES | {"paper": {"d_model": 1500, "n_layers": 2, "dropout": 0.65, **PLAIN}},
    paper="Zaremba, Sutskever, Vinyals 2014, Recurrent neural network regularization",
    parameters=(66_034_000, 10_000),
    training={"lr": 3e-3, "weight_decay": 0.01},
    rate_power=0.0,
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
    d_hidden: int | None = None,
    locked: bool = False,
    input_dropout: float | None = None,
    output_dropout: float | None = None,
    row_dropout: float = 0.0,
    weight_dropout: float = 0.0,
) -> LanguageModelConfig:
    """Gated recurrence: a cell that is kept and an output that is shown."""
    places = {"input_dropout": input_dropout, "output_dropout": output_dropout, "row_dropout": row_dropout}
    to = Assembly(n_layers, norm, residual, tied, dropout, d_hidden, **places, locked=locked)
    return recurrent(vocab_size, LstmConfig(d_model, weight_dropout=weight_dropout), to)
