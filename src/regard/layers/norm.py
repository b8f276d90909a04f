"""Normalisation of each vector on its own: LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from regard.core.config import Config


@dataclass(frozen=True)
class NormConfig(Config, kind="norm"):
    """form = "layer": (x - mean) / std * weight + bias;  form = "rms": x / rms(x) * weight."""

    d_model: int
    form: Literal["layer", "rms"] = "layer"
    epsilon: float = 1e-5

    def build(self) -> nn.Module:
        if self.form == "rms":
            return nn.RMSNorm(self.d_model, eps=self.epsilon)
        return nn.LayerNorm(self.d_model, eps=self.epsilon)
