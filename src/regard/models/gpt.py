"""GPT: a causal Transformer language model, as in GPT-2 (Radford et al. 2019), and a modern variant by settings.

The modern variant: norm=rms, position=rotary, activation=relu_squared or gated with silu, qk_norm=true, bias=false.
"""

from __future__ import annotations

from typing import Literal

from regard.core.registry import register
from regard.core.stack import BlockConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.linear import Activation
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig
from regard.models.language import LanguageModelConfig

Position = Literal["none", "learned", "sinusoidal", "rotary", "alibi"]


@register(
    "gpt",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2, "n_heads": 2, "max_length": 64},
        "small": {},
        "base": {"d_model": 384, "n_layers": 6, "n_heads": 6, "dropout": 0.2},
        "paper": {"d_model": 768, "n_layers": 12, "n_heads": 12, "max_length": 1024, "dropout": 0.1, "tied": True}
        | {"norm": "layer", "position": "learned", "activation": "gelu_tanh", "qk_norm": False, "bias": True},
    },
    paper="Radford, Wu, Child, Luan, Amodei, Sutskever 2019, Language models are unsupervised multitask learners",
    parameters=(124_439_808, 50257),
    training={"lr": 3e-3, "optimiser": "muon"},
    rate_power=0.5,
)
def gpt(
    vocab_size: int,
    *,
    d_model: int = 128,
    n_layers: int = 4,
    n_heads: int = 4,
    n_kv_heads: int | None = None,
    d_hidden: int | None = None,
    max_length: int = 1024,
    dropout: float = 0.0,
    tied: bool = False,
    norm: Literal["layer", "rms"] = "rms",
    position: Position = "rotary",
    activation: Activation = "relu_squared",
    gated: bool = False,
    qk_norm: bool = True,
    bias: bool = False,
    window: int | None = None,
) -> LanguageModelConfig:
    """Causal Transformer: every position asks all positions before it."""
    at_input = PositionConfig(d_model, position, max_length) if position in ("learned", "sinusoidal") else None
    attention = AttentionConfig(
        d_model,
        n_heads,
        n_kv_heads,
        position=position if position in ("rotary", "alibi") else "none",
        bias=bias,
        qk_norm=qk_norm,
        window=window,
        dropout=dropout,
    )
    mlp = MlpConfig(d_model, d_hidden or 4 * d_model, activation, gated, bias)
    normalise = NormConfig(d_model, norm)
    block = BlockConfig(d_model, attention, mlp, normalise, dropout=dropout)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model, at_input, dropout),
        StackConfig(d_model, (block,) * n_layers),
        normalise,
        tied=tied,
        init_std=0.02,
    )
