"""Linear: x W^T + b, with an activation of it and a sum with something else where they are asked for.

    y = g(x W^T + b) + r

A step of decoding multiplies a matrix with few rows, in which reading it is all the work: then the whole line is one
Triton kernel (kernels/decode_linear_triton.py). On a CPU it is a product with a packed copy (kernels/packed.py), for
many rows torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels.choice import takes_kernel
from regard.kernels.packed import PackedLinear
from regard.kernels.pointwise import gelu_tanh, relu_squared

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh", "relu_squared"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": F.silu,
    "tanh": torch.tanh,
    "relu_squared": relu_squared,
}
FEW_ROWS = 4  # for which the kernel reads the matrix faster than torch's products do
# Up to so many rows, outputs of which a row is no multiple of EVEN numbers long are written to longer ones, of ALIGNED:
# torch's products are slow where rows begin at odd places.
SOME_ROWS, EVEN, ALIGNED = 256, 8, 64


class Linear(PackedLinear):
    """A linear map that knows what follows it."""

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # with what follows
        self, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None
    ) -> Tensor:
        """g(x W^T + b) + r (..., N) of x (..., K); r None for nothing."""
        if has_few_rows(x, self.weight, self.bias, residual):
            from regard.kernels.decode_linear_triton import linear

            return linear(x, self.weight, self.bias, activation, residual)
        y = self.product(x)
        if activation is not None:
            y = ACTIVATIONS[activation](y)
        return y if residual is None else residual + y

    def product(self, x: Tensor) -> Tensor:
        """x W^T + b of many rows; who multiplies in another number type puts its own here."""
        y = self.by_copy(x)
        return F.linear(x, self.weight, self.bias) if y is None else y


def has_few_rows(x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None = None) -> bool:
    """Whether the kernel for few rows takes a product."""
    few = x.numel() <= FEW_ROWS * x.shape[-1] and weight.is_contiguous()
    return few and takes_kernel(x, weight, bias, residual)


def to_classes(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b (..., V), V any number."""
    if has_few_rows(x, weight, bias):
        from regard.kernels.decode_linear_triton import linear

        return linear(x, weight, bias, None, None)
    odd = x.numel() <= SOME_ROWS * x.shape[-1] and len(weight) % EVEN > 0
    if odd and takes_kernel(x, weight, bias):
        return aligned_linear(x, weight, bias)
    return F.linear(x, weight, bias)


def linear_sum(x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None = None) -> Tensor:
    """x W^T + b + r (..., N) of a matrix that is no module's own."""
    if has_few_rows(x, weight, bias, residual):
        from regard.kernels.decode_linear_triton import linear

        return linear(x, weight, bias, None, residual)
    y = F.linear(x, weight, bias)
    return y if residual is None else y + residual


def aligned_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b without gradients, written to rows whose beginnings are aligned whatever the number of classes is."""
    n, rows = len(weight), x.reshape(-1, x.shape[-1])
    y = x.new_empty(len(rows), -(-n // ALIGNED) * ALIGNED)[:, :n]
    if bias is None:
        torch.mm(rows, weight.t(), out=y)
    else:
        torch.addmm(bias, rows, weight.t(), out=y)
    return y.unflatten(0, x.shape[:-1]) if x.dim() != 2 else y
