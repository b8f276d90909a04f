"""Deep averaging network as a language model (Iyyer et al. 2015): the mean of the words so far, then a deep net."""

from __future__ import annotations

from regard.core.registry import register
from regard.core.stack import BlockConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.mixers.mean import MeanConfig
from regard.mixers.window import WindowConfig
from regard.models.language import LanguageModelConfig


@register(
    "dan",
    sizes={
        "tiny": {"d_model": 16, "d_hidden": 32},
        "small": {},
        "base": {"d_model": 512, "d_hidden": 1024, "n_layers": 3},
        "paper": {"d_model": 300, "d_hidden": 300, "n_layers": 3},
    },
    paper="Iyyer, Manjunatha, Boyd-Graber, Daumé 2015, Deep unordered composition rivals syntactic methods",
    # Carried over a whole stream the mean would hardly move any more.
    training={"lr": 3e-3, "carry_state": False},
)
def dan(
    vocab_size: int, *, d_model: int = 128, d_hidden: int = 512, n_layers: int = 2, dropout: float = 0.0
) -> LanguageModelConfig:
    """The mean of all word vectors so far, then a feed-forward net: blind to order."""
    mean = BlockConfig(d_model, MeanConfig(d_model), residual=False)
    net = BlockConfig(d_model, WindowConfig(d_model, 1, d_hidden, "relu"), dropout=dropout)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model), StackConfig(d_model, (mean, *[net] * n_layers)), head_bias=True
    )
