"""BERT: a Transformer that looks both ways and fills in masked words (Devlin, Chang, Lee, Toutanova 2019).

    h = stack(norm(E[w] + P))                          the norm after each part, on the stream itself
    p(w_t | the rest) = softmax(E norm(gelu(W h_t + b)) + c)       at masked positions t

The paper's two segments and its second objective, whether one sentence follows another, are left out: later work
(Liu et al. 2019, 4.2) found that they do not help. The smaller sizes turn queries and keys by their position and
normalise what each part reads: on world:stories 400 steps of 768 tokens end at a loss of 1.3, with learned positions at
3.6 (docs/masked.md).
"""

from __future__ import annotations

from typing import Literal

from regard.core.registry import register
from regard.core.stack import BlockConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.linear import Activation
from regard.layers.mlp import MlpConfig, TransformConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig
from regard.models.language import LanguageModelConfig

EPSILON = 1e-12


@register(
    "bert",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2, "n_heads": 2},
        "small": {},
        "base": {"d_model": 384, "n_layers": 6, "n_heads": 6, "dropout": 0.1},
        "paper": {"d_model": 768, "n_layers": 12, "n_heads": 12, "dropout": 0.1}
        | {"position": "learned", "placement": "after"},
    },
    paper="Devlin, Chang, Lee, Toutanova 2019, BERT: pre-training of deep bidirectional transformers",
    parameters=(110_000_000, 30522),
    training={"lr": 3e-3, "warmup": 0.1, "weight_decay": 0.01},
    task="masked",
)
def bert(
    vocab_size: int,
    *,
    d_model: int = 128,
    n_layers: int = 4,
    n_heads: int = 4,
    d_hidden: int | None = None,
    max_length: int = 512,
    dropout: float = 0.0,
    position: Literal["learned", "sinusoidal", "rotary", "alibi"] = "rotary",
    placement: Literal["before", "after"] = "before",
    activation: Activation = "gelu",
) -> LanguageModelConfig:
    """Transformer that looks both ways: masked words are told from what stands around them."""
    norm = NormConfig(d_model, epsilon=EPSILON)
    at_input = PositionConfig(d_model, position, max_length) if position in ("learned", "sinusoidal") else None
    attention = AttentionConfig(
        d_model,
        n_heads,
        causal=False,
        dropout=dropout,
        position=position if position in ("rotary", "alibi") else "none",
    )
    mlp = MlpConfig(d_model, d_hidden or 4 * d_model, activation)
    block = BlockConfig(d_model, attention, mlp, norm, dropout=dropout, placement=placement)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, d_model, at_input, dropout, norm=norm),
        StackConfig(d_model, (block,) * n_layers),
        norm if placement == "before" else None,
        TransformConfig(d_model, norm, activation),
        tied=True,
        head_bias=True,
        # The paper's 0.02 belongs to a width of 768; a narrower model is long in finding out where its words stand.
        init_std=0.02 * (768 / d_model) ** 0.5,
    )
