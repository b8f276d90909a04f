"""Linear: x W^T + b, with an activation of it and a sum with something else where they are asked for.

    y = g(x W^T + b) + r

A step of decoding multiplies a matrix with few rows, in which reading it is all the work: then the whole line is one
Triton kernel (kernels/decode_linear_triton.py, of more rows kernels/decode_rows_triton.py). On a CPU it is a product
with a packed copy (kernels/packed.py), for many rows torch's or compiled (kernels/product.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.tap import is_heard
from regard.kernels import product
from regard.kernels.choice import HALF, takes_kernel
from regard.kernels.decode_cpu import Step
from regard.kernels.operators import if_built
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
SOME_ROWS = 64  # the same for numbers of 16 bits, which tensor cores multiply
# The same for classes: of a count that is not even, torch's products of 16 bits take several times as long.
SOME_ROWS_OF_CLASSES = 256


class Linear(PackedLinear):
    """A linear map that knows what follows it."""

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # with what follows
        self, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None
    ) -> Tensor:
        """g(x W^T + b) + r (..., N) of x (..., K); r None for nothing."""
        quick = None if self.compiled is None else self.compiled(x)
        if quick is not None:
            return after(quick, activation, residual)
        found = (
            kernel_product(x, self.weight, self.bias, activation, residual) if self.takes_whole(x, residual) else None
        )
        return after(self.product(x), activation, residual) if found is None else found

    def to_step(self) -> Step | None:
        # Whose product is another one is asked for it.
        return super().to_step() if type(self).product is Linear.product else None

    def takes_whole(self, x: Tensor, residual: Tensor | None) -> bool:
        """Whether a kernel does the whole line."""
        return has_few_rows(x, self.weight, self.bias, residual)

    def product(self, x: Tensor) -> Tensor:
        """x W^T + b of many rows; who multiplies in another number type puts its own here."""
        y = self.by_copy(x)
        return product.linear(x, self.weight, self.bias) if y is None else y


def followed(
    linear: nn.Module, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None
) -> Tensor:
    """g(x W^T + b) + r. The map is called for its own part alone where no kernel does the whole, and where somebody
    listens to it."""
    takes = isinstance(linear, Linear) and linear.compiled is None and linear.takes_whole(x, residual)
    if takes and not is_heard(linear):
        return linear(x, activation, residual)
    return after(linear(x), activation, residual)


def after(y: Tensor, activation: Activation | None, residual: Tensor | None) -> Tensor:
    """g(y) + r."""
    if activation is not None:
        y = ACTIVATIONS[activation](y)
    return y if residual is None else residual + y


def has_few_rows(
    x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None = None, most: int = SOME_ROWS
) -> bool:
    """Whether a kernel for few rows takes a product; most: rows of 16 bits a number."""
    if torch.compiler.is_compiling():
        return False  # before sizes are looked at: what is compiled would be so for these alone
    most = most if x.dtype in HALF else FEW_ROWS
    few = x.numel() <= most * x.shape[-1] and weight.is_contiguous()
    return few and takes_kernel(x, weight, bias, residual)


def to_classes(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b (..., V), V any number."""
    found = kernel_product(x, weight, bias) if has_few_rows(x, weight, bias, most=SOME_ROWS_OF_CLASSES) else None
    return product.linear(x, weight, bias) if found is None else found


def linear_sum(x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None = None) -> Tensor:
    """x W^T + b + r (..., N) of a matrix that is no module's own."""
    found = kernel_product(x, weight, bias, None, residual) if has_few_rows(x, weight, bias, residual) else None
    return after(product.linear(x, weight, bias), None, residual) if found is None else found


def kernel_product(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    activation: Activation | None = None,
    residual: Tensor | None = None,
    scale: Tensor | None = None,
) -> Tensor | None:
    """g(s x W^T + b) + r by the kernel for the number of rows, or None where it cannot be built.

    scale  s (N,) of a matrix in 8 bits, of which the kernel for few rows alone knows; None for 1.
    """
    if x.numel() <= FEW_ROWS * x.shape[-1]:
        return if_built("linear maps of few rows", _of_few, x, weight, bias, activation, residual, scale)
    return if_built("linear maps of some rows", _of_some, x, weight, bias, activation, residual)


def _of_few(*given: Any) -> Tensor:
    from regard.kernels.decode_linear_triton import linear

    return linear(*given)


def _of_some(*given: Any) -> Tensor:
    from regard.kernels.decode_rows_triton import rows_linear

    return rows_linear(*given)
