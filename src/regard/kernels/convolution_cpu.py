"""The short convolution with SiLU on a CPU by compiled C (convolution.c): one pass forward and one back, in float32.

    y_t = silu(b + sum_(j < W) w_j x_(t-W+1+j))

torch's operations make a pass for each place of the window, and two on the way back. The inputs alone are kept for it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels.compiled import library
from regard.kernels.handed import are_plain, functions, in_rows, is_followed, place, sizes

WIDEST = 8  # windows, as in convolution.c
WORTH_A_CALL = 1 << 16  # numbers below which nobody should wait for a compiler


def takes(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Whether x (B, T, E) is worth it, and all are plain numbers of float32 on a CPU."""
    if is_followed() or x.numel() < WORTH_A_CALL or weight.shape[1] > WIDEST:
        return False
    return are_plain(x, recent, weight, bias) and library() is not None


def convolution(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """silu(conv) (B, T, E) after recent (B, W - 1, E), of weight (E, W), for what it `takes`."""
    return _Convolution.apply(x, recent, weight, bias)  # pyright: ignore[reportReturnType]


class _Convolution(torch.autograd.Function):
    """In C the weight lies as (W, E): channels side by side."""

    @staticmethod
    def forward(ctx, x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        given = [in_rows(x), recent.contiguous(), weight.T.contiguous(), bias.contiguous()]
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(*given)
        x, y = given[0], torch.empty_like(x, memory_format=torch.contiguous_format)
        told = sizes((*x.shape, weight.shape[1]), [x, y])
        functions().convolve(place(x), place(y), *map(place, given[1:]), told)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, recent, weight, bias = ctx.saved_tensors
        d_y, d_x = in_rows(gradients[0]), torch.empty_like(x, memory_format=torch.contiguous_format)
        d_recent, d_weight = torch.empty_like(recent), x.new_empty(len(x), *weight.shape)
        d_bias = x.new_empty(len(x), len(bias))
        told = sizes((*x.shape, len(weight)), [x, d_y, d_x])
        given = (x, d_y, d_x, recent, d_recent, weight, bias, d_weight, d_bias)
        functions().convolve_gradients(*map(place, given), told)
        return d_x, d_recent, d_weight.sum(0).T, d_bias.sum(0)
