"""LayerNorm and RMSNorm of each row, and the sum before them, as one Triton kernel; imported on first use only.

    s = x + a                                    where something is added
    y = (s - mean) / std * weight + bias         LayerNorm
    y = s / rms(s) * weight                      RMSNorm

One program takes one row, which its registers hold; sums are in float32.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels import choice


@triton.jit
def _norm(
    x, add, weight, bias, total, y, x_row, add_row, width, epsilon,
    CENTRED: tl.constexpr, HAS_ADD: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, BLOCK)
    real = k < width
    w = tl.load(weight + k, mask=real, other=0.0).to(tl.float32)
    if HAS_BIAS:
        shift = tl.load(bias + k, mask=real, other=0.0).to(tl.float32)
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    s = tl.load(x + row * x_row + k, mask=real, other=0.0).to(tl.float32)
    if HAS_ADD:
        s += tl.load(add + row * add_row + k, mask=real, other=0.0).to(tl.float32)
        # What the stream is from here on is what is normalised.
        rounded = s.to(total.dtype.element_ty)
        tl.store(total + row * width + k, rounded, mask=real)
        s = rounded.to(tl.float32)
    if CENTRED:
        s = tl.where(real, s - tl.sum(s, 0) / width, 0.0)
    found = s * tl.rsqrt(tl.sum(s * s, 0) / width + epsilon) * w
    if HAS_BIAS:
        found += shift
    tl.store(y + row * width + k, found.to(y.dtype.element_ty), mask=real)


def norm(
    x: Tensor, weight: Tensor, bias: Tensor | None, epsilon: float, *, centred: bool, add: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """x + add and the norm of it, of x and add (..., D)."""
    width = x.shape[-1]
    rows = _rows(x)
    added = rows if add is None else _rows(add)
    y = x.new_empty(x.shape)
    total = x if add is None else x.new_empty(x.shape)
    block = triton.next_power_of_2(width)
    early = choice.launches_early(x.device)
    _norm[(len(rows),)](
        rows, added, weight, y if bias is None else bias, total, y, rows.stride(0), added.stride(0), width, epsilon,
        CENTRED=centred, HAS_ADD=add is not None, HAS_BIAS=bias is not None, BLOCK=block, EARLY=early,
        num_warps=min(16, max(1, block // 256)), launch_pdl=early,
    )  # fmt: skip
    return total, y


def _rows(x: Tensor) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    return rows if rows.stride(-1) == 1 else rows.contiguous()
