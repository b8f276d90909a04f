"""Mamba language model (Gu and Dao 2023): blocks of selective state spaces and nothing else."""

from __future__ import annotations

from regard.core.registry import register
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.mixers.mamba import MambaConfig
from regard.models.language import LanguageModelConfig


def selective(vocab_size: int, mixer: MixerConfig, n_layers: int, dropout: float) -> LanguageModelConfig:
    """Blocks of one selective mixer with RMSNorm, and a head that shares the embedding's table."""
    norm = NormConfig(mixer.d_model, "rms")
    block = BlockConfig(mixer.d_model, mixer, norm=norm, dropout=dropout)
    return LanguageModelConfig(
        EmbeddingConfig(vocab_size, mixer.d_model, dropout=dropout),
        StackConfig(mixer.d_model, (block,) * n_layers),
        norm,
        tied=True,
        embedding_std=0.02,
    )


@register(
    "mamba",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2, "d_state": 4},
        "small": {},
        "base": {"d_model": 384, "n_layers": 8, "dropout": 0.2},
        "paper": {"d_model": 768, "n_layers": 24, "d_state": 16},
    },
    paper="Gu, Dao 2023, Mamba: linear-time sequence modeling with selective state spaces",
    parameters=(129_135_360, 50280),
    training={"lr": 3e-3, "optimiser": "muon"},
    rate_power=0.5,
)
def mamba(
    vocab_size: int, *, d_model: int = 128, n_layers: int = 4, d_state: int = 16, dropout: float = 0.0
) -> LanguageModelConfig:
    """A state space that chooses, token by token, what to write, keep and read."""
    return selective(vocab_size, MambaConfig(d_model, d_state), n_layers, dropout)
