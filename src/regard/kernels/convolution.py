"""Short causal convolution of each channel on its own, with SiLU: y_t = silu(b + sum_(j < W) w_j x_(t-W+1+j)).

x (B, T, E), recent (B, W - 1, E) the inputs before it, weight (E, W), bias (E,). On a GPU torch's grouped convolution
wants the channels apart and keeps copies; the Triton kernels of kernels/convolution_triton.py read x where it lies and
keep nothing else. They are one operator, which torch.compile leaves as it is. On a CPU it is compiled C
(kernels/convolution_cpu.py).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels import convolution_cpu
from regard.kernels.compiled_call import followed_gradients, is_made_for_others
from regard.kernels.operators import by_kernel, keep_inputs, kernels_take, readable_gradients


def causal_convolution(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """silu(conv) in the number type of x."""
    if x.shape[1] > 1 and kernels_take(x):
        return _convolution(x, recent, weight, bias)
    if x.dtype == recent.dtype == weight.dtype and torch.is_grad_enabled():
        y: Tensor = _Convolution.apply(x, recent, weight, bias)  # pyright: ignore[reportAssignmentType]
        return y
    return _forward(x, recent, weight, bias)


def _forward(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if convolution_cpu.takes(x, recent, weight, bias):
        return convolution_cpu.convolve(x, recent, weight, bias)
    return causal_convolution_readable(x, recent, weight, bias)


def causal_convolution_readable(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A handful of shifted products, which on a CPU beats the grouped convolution several times over."""
    seen = torch.cat([recent.to(x.dtype), x], 1)  # (B, W - 1 + T, E)
    return F.silu(_before_silu(seen, weight, bias)).to(x.dtype)


def _before_silu(seen: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    length = seen.shape[1] - weight.shape[1] + 1
    total = bias
    for j, w in enumerate(weight.unbind(1)):
        total = torch.addcmul(total, w, seen[:, j : j + length])
    return total


class _Convolution(torch.autograd.Function):
    """The readable form, which keeps its inputs alone; in its backward pass no shift makes a tensor of its own."""

    @staticmethod
    def forward(ctx, x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, recent, weight, bias)
        return _forward(x, recent, weight, bias)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, ...]:
        x, recent, weight, bias = ctx.saved_tensors
        if torch.is_grad_enabled() and not is_made_for_others():  # gradients that are followed are torch's own
            return followed_gradients(causal_convolution_readable, ctx.saved_tensors, gradients)
        if convolution_cpu.takes(x, recent, weight, bias, *gradients):
            return convolution_cpu.gradients(gradients[0], x, recent, weight, bias)
        seen = torch.cat([recent, x], 1)
        g = torch.ops.aten.silu_backward(gradients[0], _before_silu(seen, weight, bias))
        d_seen, d_weight = torch.zeros_like(seen), torch.empty_like(weight)
        for j, w in enumerate(weight.unbind(1)):
            piece = slice(j, j + x.shape[1])
            d_seen[:, piece].addcmul_(g, w)
            d_weight[:, j] = (g * seen[:, piece]).sum((0, 1))
        size = recent.shape[1]
        return d_seen[:, size:], d_seen[:, :size], d_weight, g.sum((0, 1))


@torch.library.custom_op("regard::convolution", mutates_args=())
def _convolution(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    inputs = (x, recent, weight, bias)

    def kernel() -> Tensor:
        from regard.kernels.convolution_triton import convolution_forward

        return convolution_forward(*inputs)

    return by_kernel("the convolution", kernel, lambda: causal_convolution_readable(*inputs))


@torch.library.custom_op("regard::convolution_backward", mutates_args=())
def _convolution_backward(d_y: Tensor, x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
    inputs = (x, recent, weight, bias)

    def kernel() -> list[Tensor]:
        from regard.kernels.convolution_triton import convolution_backward

        return list(convolution_backward(d_y, *inputs))

    return by_kernel("the convolution", kernel, lambda: readable_gradients(causal_convolution_readable, inputs, [d_y]))


@_convolution.register_fake
def _(x: Tensor, *_rest: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@_convolution_backward.register_fake
def _(_d_y: Tensor, *inputs: Tensor) -> list[Tensor]:
    return [leaf.new_empty(leaf.shape) for leaf in inputs]


def _gradients(ctx, d_y: Tensor) -> tuple[Tensor, ...]:
    return tuple(_convolution_backward(d_y, *ctx.saved_tensors))


_convolution.register_autograd(_gradients, setup_context=keep_inputs)
