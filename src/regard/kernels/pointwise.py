"""Small functions that torch's CPU build computes slowly, here with the fewest passes that their gradients allow.

    rms_norm(x)      = x r w,   r = (mean(x^2) + epsilon)^(-1/2)
    relu_squared(x)  = max(0, x)^2
    gelu_tanh(x)     = x (1 + tanh(u)) / 2 = x sigmoid(2 u),   u = sqrt(2 / pi) (x + 0.044715 x^3)

Each has torch's own form beside it, which other devices and number types take, and what is compiled: a compiler makes
one pass of it with what stands around it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

FEW = 1 << 16


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x (..., D) scaled to a root mean square of 1, times weight (D,)."""
    if not _is_slow(x) or x.dtype != weight.dtype:
        # Of one number type with the weight, torch has a fused kernel for it.
        return F.rms_norm(x, weight.shape, weight.to(x.dtype), epsilon)
    return _RmsNorm.apply(x, weight, epsilon)  # pyright: ignore[reportReturnType]


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU in the approximation that GPT-2 uses (Hendrycks and Gimpel 2016)."""
    if not _is_slow(x):
        return F.gelu(x, approximate="tanh")
    return _GeluTanh.apply(x)  # pyright: ignore[reportReturnType]


def relu_squared(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling():
        return F.relu(x).square()
    return _ReluSquared.apply(x)  # pyright: ignore[reportReturnType]


def _is_slow(x: Tensor) -> bool:
    """Whether torch's own forms are slow for it: those of a few tokens without gradients are one operation."""
    known = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    many = torch.is_grad_enabled() or x.numel() > FEW
    return known and many and not torch.compiler.is_compiling()


class _RmsNorm(torch.autograd.Function):
    """d_x = r (w g) - x r^3 mean(w g x),  d_w = sum over rows of g x r."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        r = (size.square() / x.shape[-1] + epsilon).rsqrt()
        ctx.save_for_backward(x, weight, r)
        ctx.epsilon = epsilon
        return (x * r).mul_(weight)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, r = ctx.saved_tensors
        if torch.is_grad_enabled():  # whose gradient is asked for too, and r is of x
            r = (x.square().mean(-1, keepdim=True) + ctx.epsilon).rsqrt()
        g = gradients[0]
        product = (g * x).reshape(-1, x.shape[-1])  # also of a single vector
        mean = (product @ weight).reshape(r.shape) / x.shape[-1]
        d_weight = r.reshape(-1) @ product
        d_x = (g * weight).mul_(r).addcmul_(x, mean * r**3, value=-1)
        return d_x, d_weight, None


class _ReluSquared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        positive = F.relu(x)
        return positive * positive

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0] * x, x, 0).mul_(2)


class _GeluTanh(torch.autograd.Function):
    """y = x s with s = sigmoid(a x + b x^3);  dy/dx = s + x s (1 - s) (a + 3 b x^2)."""

    A = 2 * math.sqrt(2 / math.pi)
    B = 0.044715 * A

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        s = (x * x).mul_(_GeluTanh.B).add_(_GeluTanh.A).mul_(x).sigmoid_()
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        x, s = ctx.saved_tensors
        if torch.is_grad_enabled():  # whose gradient is asked for too, and s is of x
            s = torch.sigmoid(x * (_GeluTanh.A + _GeluTanh.B * x * x))
            return gradients[0] * s * (1 + x * (_GeluTanh.A + 3 * _GeluTanh.B * x * x) * (1 - s))
        slope = (x * x).mul_(3 * _GeluTanh.B).add_(_GeluTanh.A).mul_(x)
        # x (a + 3 b x^2) s (1 - s) + s, gathered as s (1 + slope (1 - s))
        return slope.addcmul_(slope, s, value=-1).add_(1).mul_(s).mul_(gradients[0])
