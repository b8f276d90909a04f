"""Feed-forward language model over a fixed window (Bengio et al. 2003)."""

from __future__ import annotations

from regard.core.registry import register
from regard.core.stack import BlockConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.mixers.window import WindowConfig
from regard.models.language import LanguageModelConfig


@register(
    "fnn",
    sizes={
        "tiny": {"d_model": 16, "window": 3, "d_hidden": 24},
        "small": {},
        "base": {"d_model": 384, "d_hidden": 1536, "window": 16, "n_layers": 2, "dropout": 0.2},
        "paper": {"d_model": 60, "d_hidden": 50, "window": 4, "n_layers": 0},
    },
    paper="Bengio, Ducharme, Vincent, Jauvin 2003, A neural probabilistic language model",
    parameters=(None, 16_383),
    training={"lr": 3e-3},
)
def fnn(
    vocab_size: int,
    *,
    d_model: int = 128,
    d_hidden: int = 512,
    window: int = 8,
    n_layers: int = 1,
    dropout: float = 0.0,
) -> LanguageModelConfig:
    """The last words side by side through a tanh layer: sees order, and nothing before the window.

    n_layers counts the residual feed-forward layers after the first one; 0 is the net of 2003.
    """
    first = BlockConfig(d_model, WindowConfig(d_model, window, d_hidden), residual=False, dropout=dropout)
    inner = WindowConfig(d_model, 1, d_hidden, "gelu_tanh")
    later = BlockConfig(d_model, inner, norm=NormConfig(d_model), dropout=dropout)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model, dropout=dropout),
        StackConfig(d_model, (first, *[later] * n_layers)),
        head_bias=True,
    )
