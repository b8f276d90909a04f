"""Short causal convolution of each channel on its own, with the last inputs as its state (Mamba's first mixing)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from regard.core.context import Owned, last_real
from regard.kernels.choice import takes_kernel
from regard.kernels.convolution import causal_convolution
from regard.kernels.operators import if_built


class CausalConvolution(nn.Module):
    """y_t = silu(b + sum_(j < W) w_j x_(t-W+1+j)), channel by channel; places before the beginning are zero."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(window)
        self.weight = nn.Parameter(torch.empty(width, window).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(
        self, x: Tensor, recent: Tensor, lengths: Tensor | None, owned: Owned | None = None
    ) -> tuple[Tensor, Tensor]:
        """x (B, T, E) after recent (B, W - 1, E): the outputs and the next `recent`, of one token in place if owned."""
        if x.shape[1] == 1 and lengths is None and takes_kernel(x, recent, self.weight, self.bias):
            alive = None if owned is None else owned.alive
            found = if_built("the convolution of one token", self._step, x[:, 0], recent, alive)
            if found is not None:
                return found[0][:, None], found[1]
        return causal_convolution(x, recent, self.weight, self.bias), self._last(x, recent, lengths)

    def _step(self, x: Tensor, recent: Tensor, alive: Tensor | None) -> tuple[Tensor, Tensor]:
        from regard.kernels.state_step_triton import convolution_step

        return convolution_step(x, recent.contiguous(), self.weight, self.bias, alive)

    def _last(self, x: Tensor, recent: Tensor, lengths: Tensor | None) -> Tensor:
        size = recent.shape[1]
        if lengths is None and x.shape[1] >= size:
            return x[:, x.shape[1] - size :].to(recent.dtype, copy=True)
        return last_real(torch.cat([recent, x.to(recent.dtype)], 1), lengths, size)
