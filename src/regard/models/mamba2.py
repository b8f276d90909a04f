"""Mamba-2 language model (Dao and Gu 2024): blocks of SSD layers."""

from __future__ import annotations

from regard.core.registry import register
from regard.mixers.ssd import SsdConfig
from regard.models.language import LanguageModelConfig
from regard.models.mamba import selective


@register(
    "mamba2",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 2, "d_state": 4, "d_head": 8, "chunk": 8},
        "small": {},
        "base": {"d_model": 384, "n_layers": 8, "d_state": 64, "d_head": 64, "dropout": 0.2},
        "paper": {"d_model": 768, "n_layers": 24, "d_state": 128, "d_head": 64, "chunk": 256},
    },
    paper="Dao, Gu 2024, Transformers are SSMs: generalized models and efficient algorithms through structured "
    "state space duality",
    parameters=(128_989_632, 50288),
    training={"lr": 3e-3, "optimiser": "muon"},
    rate_power=0.5,
)
def mamba2(
    vocab_size: int,
    *,
    d_model: int = 128,
    n_layers: int = 4,
    d_state: int = 32,
    d_head: int = 32,
    chunk: int = 64,
    dropout: float = 0.0,
) -> LanguageModelConfig:
    """Mamba with one decay a head: the same map as a masked attention, computed by matrix products."""
    return selective(vocab_size, SsdConfig(d_model, d_state, d_head, chunk=chunk), n_layers, dropout)
