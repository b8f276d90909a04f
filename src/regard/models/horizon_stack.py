"""What reads a horizon beside the past that a forecaster has read: its times at once, or one after the other."""

from __future__ import annotations

from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.cross import CrossAttentionConfig
from regard.mixers.given import GivenConfig
from regard.mixers.lstm import LstmConfig


def attentive(d_model: int, n_layers: int, n_heads: int, dropout: float) -> MixerConfig:
    """Times of the horizon look at each other and at the past."""
    norm = NormConfig(d_model)
    within = AttentionConfig(d_model, n_heads, causal=False, dropout=dropout)
    across = CrossAttentionConfig(d_model, n_heads, dropout=dropout)
    layer = (
        BlockConfig(d_model, within, None, norm, dropout=dropout),
        BlockConfig(d_model, across, MlpConfig(d_model, 2 * d_model), norm, dropout=dropout),
    )
    return StackConfig(d_model, layer * n_layers)


def recurrent(d_model: int) -> MixerConfig:
    """The past as the first state of a recurrence over the horizon."""
    return GivenConfig(d_model, LstmConfig(d_model), pooling="last")
