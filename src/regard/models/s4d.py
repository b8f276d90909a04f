"""S4D language model: blocks of diagonal state spaces and feed-forward nets (Gu et al. 2022)."""

from __future__ import annotations

from regard.core.registry import register
from regard.core.stack import BlockConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.mixers.s4d import Initialisation, S4dConfig
from regard.models.language import NORMED_STD, LanguageModelConfig


@register(
    "s4d",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2, "d_state": 4},
        "small": {},
        "base": {"d_model": 384, "n_layers": 6, "d_state": 64, "dropout": 0.2},
        "paper": {"d_model": 1024, "n_layers": 16, "d_state": 64, "dropout": 0.25},
    },
    paper="Gu, Gupta, Goel, Ré 2022, On the parameterization and initialization of diagonal state space models",
    training={"lr": 6e-3},
    rate_power=0.0,
)
def s4d(
    vocab_size: int,
    *,
    d_model: int = 128,
    n_layers: int = 4,
    d_state: int = 32,
    init: Initialisation = "lin",
    dropout: float = 0.0,
) -> LanguageModelConfig:
    """A long convolution that is also a recurrence, the same at every token."""
    norm = NormConfig(d_model)
    mixer, mlp = S4dConfig(d_model, d_state, init), MlpConfig(d_model, 2 * d_model)
    block = BlockConfig(d_model, mixer, mlp, norm, dropout=dropout)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model, dropout=dropout),
        StackConfig(d_model, (block,) * n_layers),
        norm,
        embedding_std=NORMED_STD,
    )
