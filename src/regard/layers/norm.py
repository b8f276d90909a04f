"""Normalisation of each vector on its own: LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019).

Both answer in the number type of what they read, also under autocast, where torch's own would give float32: a residual
stream in half precision stays one, and half as many bytes move. Sums inside are in float32 all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.kernels.pointwise import rms_norm

HALF = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class NormConfig(Config, kind="norm"):
    """form = "layer": (x - mean) / std * weight + bias;  form = "rms": x / rms(x) * weight.

    dropout acts after it, where the size of the vectors is settled.
    """

    d_model: int
    form: Literal["layer", "rms"] = "layer"
    epsilon: float = 1e-5
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check(self.epsilon >= 0, f"epsilon must not be negative, found {self.epsilon}")
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    def build(self) -> nn.Module:
        rms = self.form == "rms"
        norm = RmsNorm(self.d_model, self.epsilon) if rms else LayerNorm(self.d_model, eps=self.epsilon)
        return nn.Sequential(norm, nn.Dropout(self.dropout)) if self.dropout else norm


class LayerNorm(nn.LayerNorm):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias."""

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        if x.dtype not in HALF or not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
            return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


class RmsNorm(nn.Module):
    """x / sqrt(mean(x^2) + epsilon) * weight."""

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype not in HALF or not torch.is_autocast_enabled(x.device.type):
            return rms_norm(x, self.weight, self.epsilon)
        with torch.autocast(x.device.type, enabled=False):
            return rms_norm(x, self.weight, self.epsilon)
