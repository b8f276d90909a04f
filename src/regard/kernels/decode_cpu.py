"""A step of decoding on a CPU, by compiled C: products of few rows, norms, and attention of one token (decode_cpu.c).

Each has its readable form where it is called; both are equal up to the rounding of float32. torch's product of one row
reaches half of what memory gives; these read the matrix as it lies, so that nothing is copied before the first token.

A part takes them while its `compiled` holds, which `packed_weights` (packed.py) sees to for large models: the C library
is made when the first of them steps, and never when the package is imported.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

import torch
from torch import Tensor

from regard.kernels.choice import PLAIN
from regard.kernels.compiled import library

FEW_ROWS = 4
Norms = tuple[Tensor, Tensor, float]


class Compiled:
    """A part of a model with a compiled form of its step. compiled: whether it is taken where it can be."""

    compiled: bool = False


def takes(x: Tensor, *others: Tensor | None, most: int = FEW_ROWS) -> bool:
    """Whether few rows x, and what else is read, are plain numbers in float32 that nobody wants gradients of."""
    if torch.is_grad_enabled() or not _is_read(x) or not 0 < x.numel() <= most * x.shape[-1]:
        return False
    alike = all(other is None or _is_read(other) for other in others)
    return alike and not (torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"))


def _is_read(x: Tensor) -> bool:
    return x.dtype is torch.float32 and x.device.type == "cpu" and x.is_contiguous() and type(x) in PLAIN


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b (..., N) of x (..., K) and W (N, K)."""
    y = _room(x, *weight.shape)
    given = y.data_ptr(), x.data_ptr(), weight.data_ptr(), _address(bias)
    _library().linear_float(*given, x.numel() // x.shape[-1], *weight.shape)
    return y


def linear_int8(x: Tensor, q: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """The same of W = s q (kernels/int8.py): its definition, in which x is not rounded."""
    y = _room(x, *q.shape)
    given = y.data_ptr(), x.data_ptr(), q.data_ptr(), scale.data_ptr(), _address(bias)
    _library().linear_int8(*given, x.numel() // x.shape[-1], *q.shape)
    return y


def linear_blocks(x: Tensor, blocks: Tensor, kind: int, bias: Tensor | None) -> Tensor:
    """The same of W in blocks (N, bytes) of a kind (kernels/blocks.py)."""
    n, k = len(blocks), x.shape[-1]
    y = x.new_empty(*x.shape[:-1], n)
    given = y.data_ptr(), x.data_ptr(), blocks.data_ptr(), _address(bias)
    _library().linear_blocks(*given, x.numel() // k, n, k, kind)
    return y


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x (..., D) over its root mean square, times weight (D,)."""
    y, width = torch.empty_like(x), x.shape[-1]
    if weight.shape != (width,):
        raise ValueError(f"a norm of width {tuple(weight.shape)} does not take vectors of width {width}")
    _library().norm_rms(y.data_ptr(), x.data_ptr(), weight.data_ptr(), x.numel() // width, width, epsilon)
    return y


def attend(
    q: Tensor,
    new: tuple[Tensor, Tensor],
    cache: tuple[Tensor, Tensor],
    count: Tensor,
    scale: float,
    window: int | None,
    norms: Norms | None,
    base: float | None,
) -> Tensor:
    """As `decode_attention` (decode_attention.py) says."""
    k, v = new
    keys, values = cache
    (rows, heads, width), (_, slots, groups, _) = q.shape, keys.shape
    if not all(part.stride()[1:] == (width, 1) and part.stride(0) == q.stride(0) for part in (q, k, v)):
        q, k, v = torch.cat([q, k, v], 1).split([heads, groups, groups], 1)
    y, scratch = q.new_empty(rows, heads, width), q.new_empty(heads * (width + slots))
    query, key, epsilon = norms or (None, None, 0.0)
    turned = None if base is None else _frequencies(width, base)
    pairs = 0 if turned is None else len(turned)
    sizes = (ctypes.c_int64 * 8)(rows, heads, groups, width, slots, window or 0, pairs, q.stride(0))
    given = [part.data_ptr() for part in (y, q, k, v, keys, values, count)]
    given += [_address(query), _address(key), _address(turned), scratch.data_ptr(), ctypes.addressof(sizes)]
    if _library().attend(*given, scale, epsilon):
        raise ValueError(f"a state with room for {slots} tokens cannot hold {int(count.max()) + 1}: reserve more")
    return y


def takes_attention(q: Tensor, keys: Tensor) -> bool:
    """Whether `attend` takes one query a row, (B, H, K), over a cache (B, S, G, K)."""
    known = q.dtype is torch.float32 and q.device.type == "cpu"
    return known and not torch.is_grad_enabled() and not torch.compiler.is_compiling() and _is_read(keys)


@lru_cache(maxsize=16)
def _frequencies(width: int, base: float) -> Tensor:
    """base^(-2k/K) in float64, so that far positions keep their phase."""
    with torch.inference_mode(False):
        return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def _room(x: Tensor, n: int, k: int) -> Tensor:
    if x.shape[-1] != k:
        raise ValueError(f"a matrix of {n} x {k} does not take vectors of width {x.shape[-1]}")
    return x.new_empty(*x.shape[:-1], n)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _library() -> ctypes.CDLL:
    found = library()
    assert found is not None, "a part is compiled without a library"
    return found
