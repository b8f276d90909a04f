"""Products of float32 on a CPU by C, where torch's leave half of the processor idle.

    y = x W^T + b        dx = g W,   dW = g^T x,   db = sum g

torch multiplies by Intel's library, which uses vectors of 512 bits on Intel's processors alone: on others that have
them it reaches half of what they can do. On two cores of such a one, in GFLOP/s:

    rows, outputs, inputs       torch    here
    64, 128, 128                  151     258
    768, 384, 128                 229     493        dx 225, 482;  dW 207, 464
    2048, 1152, 384               239     513        dx 227, 508;  dW 223, 498
    300, 33000, 256               141     433        dx  91, 382;  dW 167, 301

So there, and nowhere else, linear maps and the head's cross-entropy multiply by product.c; what is small, compiled,
watched by somebody or in other numbers is torch's. Which of both multiplies depends on shapes alone. Both are equal up
to the rounding of float32.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels.compiled import library
from regard.kernels.compiled_call import are_plain, is_made_for_others, loaded

WORTH_A_CALL = 1 << 20  # multiplications from which on it is faster than torch's
WORTH_GRADIENTS = 1 << 21  # the same with what a function with gradients of its own costs
_NINE = ctypes.c_int64 * 9


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b (..., N) of x (..., K), W (N, K)."""
    if is_made_for_others():
        return F.linear(x, weight, bias)  # before sizes are looked at: what is made would be so for these alone
    graded = torch.is_grad_enabled()
    work = x.numel() * weight.shape[0]
    if work < (WORTH_GRADIENTS if graded else WORTH_A_CALL) or not takes(x, weight, bias):
        return F.linear(x, weight, bias)
    if not fit(x, weight.shape, bias):
        return F.linear(x, weight, bias)
    if graded and any(part is not None and part.requires_grad for part in (x, weight, bias)):
        return _Linear.apply(x, weight, bias)  # pyright: ignore[reportReturnType]
    return _product(x, weight, bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        # Each for the gradient of the other: what is not asked for is neither held nor kept from changing.
        of_x, of_weight = ctx.needs_input_grad[:2]
        ctx.save_for_backward(x if of_weight else None, weight if of_x else None)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        g = gradients[0]
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            linear(g, weight.t(), None) if of_x else None,
            linear(_rows(g).t(), _rows(x).t(), None) if of_weight else None,
            _rows(g).sum(0) if of_bias else None,
        )


def takes(*tensors: Tensor | None) -> bool:
    """Whether all are plain numbers of float32 on a CPU that is faster here, and nobody has to see them multiplied."""
    return is_halved() and are_plain(*tensors) and library() is not None


@cache
def is_halved() -> bool:
    """Whether torch's products take half of what this processor has."""
    return has_wide_vectors() and torch.backends.mkl.is_available() and "GenuineIntel" not in _processor()


def has_wide_vectors() -> bool:
    return torch.backends.cpu.get_cpu_capability() == "AVX512"


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    return told.read_text(encoding="utf-8", errors="replace")[:1000] if told.exists() else platform.processor()


def multiply(y: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None, *, adds: bool = False) -> Tensor:
    """y (M, N) = a b + bias of a (M, K) and b (K, N), which may lie in any order; or y + a b, which `adds`."""
    return _run(y, a, b, bias, (*y.shape, a.shape[1]), (*a.stride(), *b.stride()), adds)


def panels_of(weight: Tensor) -> Tensor:
    """The panels (product.c) of W^T, of W (N, K)."""
    found = loaded()
    weight, (n, k) = weight.detach().contiguous(), weight.shape
    made = weight.new_empty(found.size_of_panels(n, k))
    found.panels(made.data_ptr(), weight.data_ptr(), n, k)
    return made


def by_panels(x: Tensor, panels: Tensor, bias: Tensor | None, n: int) -> Tensor:
    """x W^T + b (M, N) of x (M, K) and the panels of W^T."""
    y = x.new_empty(len(x), n)
    return _run(y, x, panels, bias, (*y.shape, x.shape[1]), (*x.stride(), 0, 0), made=True)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    # A view of what was made would not be allowed to change in place.
    y = x.new_empty(*x.shape[:-1], len(weight))
    multiply(_rows(y), _rows(x), weight.t(), bias)
    return y


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


def fit(x: Tensor, size: Sequence[int], bias: Tensor | None) -> bool:
    """Whether x W^T + b is there, W of this size; C would read what lies beside them, torch says what is wrong."""
    return len(size) == 2 and x.shape[-1] == size[1] and (bias is None or bias.shape == size[:1])


def _run(
    y: Tensor,
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    adds: bool = False,
    made: bool = False,
) -> Tensor:
    bias = None if bias is None else bias.contiguous()
    numbers = _NINE(*sizes, *strides, adds, made)
    given = None if bias is None else bias.data_ptr()
    loaded().product(y.data_ptr(), a.data_ptr(), b.data_ptr(), given, ctypes.addressof(numbers))
    return y
