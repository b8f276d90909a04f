"""A step of decoding on a CPU, by compiled C: products of few rows, norms, and attention of one token (decode_cpu.c).

Each has its readable form where it is called; both are equal up to the rounding of float32. torch's product of one row
reaches half of what memory gives; these read the matrix as it lies, so that nothing is copied before the first token.

A part takes them while it has a `Step`, which `packed_weights` (packed.py) gives to those of large models: the C
library is made when the first of them steps, and never when the package is imported. What does not change from call to
call is looked up once: a step of a model of 270 million weights in 8 bits is 10 ms of reading, and hundreds of calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from regard.kernels.choice import PLAIN
from regard.kernels.compiled_call import loaded

FEW_ROWS, SOME_ROWS = 4, 64
# Attention of one token, by the numbers of the state.
ATTENDS = {torch.float32: "attend", torch.bfloat16: "attend_bfloat16"}
Norms = tuple[Tensor, Tensor, float]


class Step:
    """A compiled function of few rows x (..., K): y (..., N), or None where x is not what it takes.

    name   of the function in decode_cpu.c.
    held   tensors that it reads, None for one that there is not.
    sizes  N and K. more: what else it is given, after the sizes. most: rows that it takes.
    """

    __slots__ = ("_call", "_held", "_k", "_more", "_most", "_n", "_read")

    def __init__(
        self, name: str, held: Sequence[Tensor | None], sizes: tuple[int, int], *more: float, most: int = FEW_ROWS
    ) -> None:
        (self._n, self._k), self._more, self._most = sizes, more, most
        self._call, self._held = getattr(loaded(), name), held
        self._read = [_address(tensor) for tensor in held]

    def __call__(self, x: Tensor) -> Tensor | None:
        k, size = self._k, x.numel()
        if x.dtype is not torch.float32 or x.shape[-1] != k or not 0 < size <= self._most * k or type(x) not in PLAIN:
            return None
        if torch.is_grad_enabled() or not x.is_cpu or not x.is_contiguous() or torch.is_autocast_enabled("cpu"):
            return None
        y = x.new_empty(*x.shape[:-1], self._n)
        torch.get_num_threads()  # a thread that has not asked torch yet has as many as there are processors
        self._call(y.data_ptr(), x.data_ptr(), *self._read, size // k, self._n, k, *self._more)
        return y

    def __reduce__(self) -> tuple[Any, ...]:
        # Whoever copies a model copies no addresses.
        return type(None), ()


class AttentionStep:
    """Attention of one token by C: what `decode_attention` (decode_attention.py) says, of these settings."""

    __slots__ = ("_base", "_calls", "_norms", "_scale", "_window")

    def __init__(self, scale: float, window: int | None, norms: Norms | None, base: float | None) -> None:
        self._scale, self._window, self._base = scale, window or 0, base
        self._norms = None if norms is None else (norms[0].float(), norms[1].float(), norms[2])
        self._calls = {kind: getattr(loaded(), name) for kind, name in ATTENDS.items()}

    def __call__(self, q: Tensor, new: tuple[Tensor, Tensor], cache: tuple[Tensor, Tensor], count: Tensor) -> Tensor:
        (k, v), (keys, values) = new, cache
        (rows, heads, width), (_, slots, groups, _) = q.shape, keys.shape
        step, own = q.stride(0), (width, 1)
        if not q.stride()[1:] == k.stride()[1:] == v.stride()[1:] == own or not step == k.stride(0) == v.stride(0):
            q, k, v = torch.cat([q, k, v], 1).split([heads, groups, groups], 1)
            step = q.stride(0)
        y = q.new_empty(rows, heads, width)
        scratch = q.new_empty(rows * heads * (width + slots) + width, dtype=torch.float32)
        query, key, epsilon = self._norms or (None, None, 0.0)
        turned = None if self._base is None else _frequencies(width, self._base)
        pairs = 0 if turned is None else width // 2
        sizes = _EIGHT(rows, heads, groups, width, slots, self._window, pairs, step)
        given = [part.data_ptr() for part in (y, q, k, v, keys, values, count)]
        torch.get_num_threads()
        given += [_address(query), _address(key), _address(turned), scratch.data_ptr(), ctypes.addressof(sizes)]
        if self._calls[q.dtype](*given, self._scale, epsilon):
            raise ValueError(f"a state with room for {slots} tokens cannot hold {int(count.max()) + 1}: reserve more")
        return y

    def takes(self, q: Tensor, keys: Tensor) -> bool:
        """Whether it takes one query a row, (B, H, K), over a cache (B, S, G, K)."""
        plain = q.is_cpu and not torch.is_grad_enabled() and keys.is_contiguous() and type(keys) in PLAIN
        # Of another number of rows it would read and write beside the cache; the readable form says what is wrong.
        alike = len(q) == len(keys) and q.dtype is keys.dtype and keys.device.type == "cpu"
        return plain and alike and q.dtype in ATTENDS

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


_EIGHT = ctypes.c_int64 * 8


class Compiled:
    """A part of a model with a compiled form of its step.

    compiled  that form while it is to be taken.
    """

    compiled: Step | None = None

    def to_step(self) -> Step | None:
        """The compiled form of the part as it is; None where its numbers are not what such a form reads."""
        raise NotImplementedError


class CompiledAttention(Compiled):
    """The same of a part that attends."""

    compiled: AttentionStep | None = None  # pyright: ignore[reportIncompatibleVariableOverride]  # of more inputs

    def to_step(self) -> AttentionStep | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise NotImplementedError


def is_read(*tensors: Tensor | None) -> bool:
    """Whether these are plain numbers in float32, one after the other, where there are any."""
    return all(tensor is None or _is_read(tensor) for tensor in tensors)


def _is_read(x: Tensor) -> bool:
    return x.dtype is torch.float32 and x.device.type == "cpu" and x.is_contiguous() and type(x) in PLAIN


def linear(weight: Tensor, bias: Tensor | None) -> Step | None:
    """x W^T + b of W (N, K)."""
    n, k = weight.shape
    return Step("linear_float", (weight, bias), (n, k)) if is_read(weight, bias) else None


def linear_int8(q: Tensor, scale: Tensor, bias: Tensor | None) -> Step | None:
    """The same of W = s q (kernels/int8.py): its definition, in which x is not rounded."""
    n, k = q.shape
    plain = q.device.type == "cpu" and q.is_contiguous() and is_read(scale, bias)
    return Step("linear_int8", (q, scale, bias), (n, k), most=SOME_ROWS) if plain else None


def linear_blocks(blocks: Tensor, kind: int, width: int, bias: Tensor | None) -> Step | None:
    """The same of W in blocks (N, bytes) of a kind (kernels/blocks.py), rows of `width` numbers."""
    plain = blocks.device.type == "cpu" and blocks.is_contiguous() and is_read(bias)
    return Step("linear_blocks", (blocks, bias), (len(blocks), width), kind, most=SOME_ROWS) if plain else None


def rms_norm(weight: Tensor, epsilon: float) -> Step | None:
    """x (..., D) over its root mean square, times weight (D,)."""
    (width,) = weight.shape
    return Step("norm_rms", (weight,), (width, width), epsilon) if is_read(weight) else None


@lru_cache(maxsize=16)
def _frequencies(width: int, base: float) -> Tensor:
    """base^(-2k/K) in float64, so that far positions keep their phase."""
    with torch.inference_mode(False):
        return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
