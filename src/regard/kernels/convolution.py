"""Short causal convolution of each channel on its own, with SiLU: y_t = silu(b + sum_(j < W) w_j x_(t-W+1+j)).

x (B, T, E), recent (B, W - 1, E) the inputs before it, weight (E, W), bias (E,). On a GPU torch's grouped convolution
wants the channels apart and keeps copies; the Triton kernels of kernels/convolution_triton.py read x where it lies and
keep nothing else. They are one operator, which torch.compile leaves as it is.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels.operators import keep_inputs, kernels_take


def causal_convolution(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """silu(conv) in the number type of x."""
    if x.shape[1] > 1 and kernels_take(x):
        return _convolution(x, recent, weight, bias)
    return causal_convolution_readable(x, recent, weight, bias)


def causal_convolution_readable(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A handful of shifted products, which on a CPU beats the grouped convolution several times over."""
    seen = torch.cat([recent.to(x.dtype), x], 1)  # (B, W - 1 + T, E)
    shifted = (weight[:, j] * seen[:, j : j + x.shape[1]] for j in range(weight.shape[1]))
    return F.silu(sum(shifted, bias)).to(x.dtype)


@torch.library.custom_op("regard::convolution", mutates_args=())
def _convolution(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    from regard.kernels.convolution_triton import convolution_forward

    return convolution_forward(x, recent, weight, bias)


@torch.library.custom_op("regard::convolution_backward", mutates_args=())
def _convolution_backward(
    d_y: Tensor, x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from regard.kernels.convolution_triton import convolution_backward

    return convolution_backward(d_y, x, recent, weight, bias)


@_convolution.register_fake
def _(x: Tensor, *_rest: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@_convolution_backward.register_fake
def _(_d_y: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return tuple(leaf.new_empty(leaf.shape) for leaf in inputs)


def _gradients(ctx, d_y: Tensor) -> tuple[Tensor, ...]:
    return tuple(_convolution_backward(d_y, *ctx.saved_tensors))


_convolution.register_autograd(_gradients, setup_context=keep_inputs)
