"""Short causal convolution of each channel on its own, with the last inputs as its state (Mamba's first mixing)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.context import last_real


class CausalConvolution(nn.Module):
    """y_t = b + sum_(j < W) w_j x_(t-W+1+j), channel by channel; places before the beginning are zero."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(window)
        self.weight = nn.Parameter(torch.empty(width, window).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(self, x: Tensor, recent: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """x (B, T, E) after recent (B, W - 1, E): the outputs and the next `recent`."""
        seen = torch.cat([recent.to(x.dtype), x], 1)  # (B, W - 1 + T, E)
        window, length = self.weight.shape[1], x.shape[1]
        if x.device.type == "cuda":
            y = F.conv1d(seen.transpose(1, 2), self.weight[:, None], self.bias, groups=x.shape[2]).transpose(1, 2)
        else:
            # On a CPU a handful of shifted products beats the grouped convolution several times over.
            y = self.bias + sum(self.weight[:, j] * seen[:, j : j + length] for j in range(window))
        return y, last_real(seen, lengths, window - 1).to(recent.dtype)
