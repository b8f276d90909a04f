"""Backpack language model (Hewitt et al. 2023): a causal Transformer chooses among sense vectors it cannot change."""

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
from regard.mixers.senses import SensesConfig
from regard.models.language import LanguageModelConfig


@register(
    "backpack",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2, "n_heads": 2, "n_senses": 4, "max_length": 64},
        "small": {},
        "base": {"d_model": 384, "n_layers": 6, "n_heads": 6, "n_senses": 16, "dropout": 0.2},
        "paper": {"d_model": 768, "n_layers": 12, "n_heads": 12, "n_senses": 16, "max_length": 512, "dropout": 0.1}
        | {"norm": "layer", "position": "learned", "activation": "gelu_tanh", "qk_norm": False, "bias": True},
    },
    paper="Hewitt, Thickstun, Manning, Liang 2023, Backpack language models",
    parameters=(170_000_000, 50257),
    training={"lr": 3e-3, "optimiser": "muon"},
    rate_power=0.5,
)
def backpack(
    vocab_size: int,
    *,
    d_model: int = 128,
    n_layers: int = 4,
    n_heads: int = 4,
    n_senses: int = 8,
    max_length: int = 1024,
    dropout: float = 0.0,
    norm: Literal["layer", "rms"] = "rms",
    position: Literal["learned", "rotary"] = "rotary",
    activation: Activation = "relu_squared",
    qk_norm: bool = True,
    bias: bool = False,
) -> LanguageModelConfig:
    """Words carry several sense vectors; the context only weighs them, and the output is linear in them."""
    within = "rotary" if position == "rotary" else "none"
    attention = AttentionConfig(d_model, n_heads, position=within, bias=bias, qk_norm=qk_norm, dropout=dropout)
    mlp = MlpConfig(d_model, 4 * d_model, activation, bias=bias)
    block = BlockConfig(d_model, attention, mlp, NormConfig(d_model, norm), dropout=dropout)
    at_input = PositionConfig(d_model, "learned", max_length) if position == "learned" else None
    senses = SensesConfig(d_model, StackConfig(d_model, (block,) * n_layers), n_senses, position=at_input)
    # GPT-2's 0.02 belongs to a width of 768; a narrower model needs larger weights for outputs of the same size.
    std = 0.02 * (768 / d_model) ** 0.5
    return LanguageModelConfig(EmbeddingConfig(vocab_size, d_model), senses, tied=True, init_std=std)
