"""RMSNorm of a gated vector, as Mamba-2 ends its mixing: y = s r w,  s = x silu(z),  r = (mean(s^2) + epsilon)^(-1/2).

x (..., D), z of the same shape the gate, w (D,). On a GPU the Triton kernels of kernels/gated_norm_triton.py read x and
z where they lie and keep nothing else; they are one operator, which torch.compile leaves as it is. So does compiled C
on a CPU (kernels/gated_norm_cpu.py).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels import gated_norm_cpu
from regard.kernels.operators import by_kernel, kernels_take, readable_gradients
from regard.kernels.pointwise import rms_norm

# Numbers of a vector that the registers of a program hold.
WIDEST = 8192


def gated_rms_norm(x: Tensor, z: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """In the number type of x."""
    if x.dtype == z.dtype and x.numel() > 0 and x.shape[-1] <= WIDEST and kernels_take(x):
        return _gated_norm(x.flatten(0, -2), z.flatten(0, -2), weight, epsilon).reshape(x.shape)
    if gated_norm_cpu.takes(x, z, weight):
        return gated_norm_cpu.gated_norm(x, z, weight, epsilon, gated_rms_norm_readable)
    return gated_rms_norm_readable(x, z, weight, epsilon)


def gated_rms_norm_readable(x: Tensor, z: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return rms_norm(x * F.silu(z), weight, epsilon)


@torch.library.custom_op("regard::gated_norm", mutates_args=())
def _gated_norm(x: Tensor, z: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    def kernel() -> Tensor:
        from regard.kernels.gated_norm_triton import gated_norm_forward

        return gated_norm_forward(x, z, weight, epsilon)

    return by_kernel("the gated norm", kernel, lambda: gated_rms_norm_readable(x, z, weight, epsilon).to(x.dtype))


@torch.library.custom_op("regard::gated_norm_backward", mutates_args=())
def _gated_norm_backward(d_y: Tensor, x: Tensor, z: Tensor, weight: Tensor, epsilon: float) -> list[Tensor]:
    def kernel() -> list[Tensor]:
        from regard.kernels.gated_norm_triton import gated_norm_backward

        return list(gated_norm_backward(d_y, x, z, weight, epsilon))

    def readable(x: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        return gated_rms_norm_readable(x, z, weight, epsilon).to(x.dtype)

    return by_kernel("the gated norm", kernel, lambda: readable_gradients(readable, (x, z, weight), [d_y]))


@_gated_norm.register_fake
def _(x: Tensor, _z: Tensor, _weight: Tensor, _epsilon: float) -> Tensor:
    return x.new_empty(x.shape)


@_gated_norm_backward.register_fake
def _(_d_y: Tensor, x: Tensor, z: Tensor, weight: Tensor, _epsilon: float) -> list[Tensor]:
    return [leaf.new_empty(leaf.shape) for leaf in (x, z, weight)]


def _keep(ctx, inputs: tuple[Tensor, Tensor, Tensor, float], output: Tensor) -> None:  # noqa: ARG001
    *tensors, ctx.epsilon = inputs
    ctx.save_for_backward(*tensors)


def _gradients(ctx, d_y: Tensor) -> tuple[Tensor | None, ...]:
    return (*_gated_norm_backward(d_y, *ctx.saved_tensors, ctx.epsilon), None)


_gated_norm.register_autograd(_gradients, setup_context=_keep)
