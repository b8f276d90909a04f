"""RMSNorm of a gated vector as two Triton kernels, for CUDA devices; imported on first use only.

Names and equation: kernels/gated_norm.py. R is the number of vectors; the backward pass makes s and r again.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.layout import dense, step_of

# Vectors that a program of the backward pass goes through, for whose share in the weight's gradient it has one place.
RUN = 16


@triton.jit
def _forward(x, z, weight, y, epsilon, x_row, z_row, D: tl.constexpr, STEP: tl.constexpr, BD: tl.constexpr):
    row, d = tl.program_id(0).to(tl.int64), tl.arange(0, BD)
    real = d < D
    own = tl.load(x + row * (x_row * STEP) + d, mask=real, other=0.0).to(tl.float32)
    gate = tl.load(z + row * (z_row * STEP) + d, mask=real, other=0.0).to(tl.float32)
    w = tl.load(weight + d, mask=real, other=0.0).to(tl.float32)
    s = own * gate * tl.sigmoid(gate)
    r = tl.rsqrt(tl.sum(s * s, 0) / D + epsilon)
    tl.store(y + row * D + d, (s * r * w).to(y.dtype.element_ty), mask=real)


@triton.jit
def _backward(
    x, z, weight, d_y, d_x, d_z, shares, epsilon, R, x_row, z_row,
    D: tl.constexpr, STEP: tl.constexpr, BD: tl.constexpr, RUN: tl.constexpr,
):  # fmt: skip
    """d_s = r g - s r^3 mean(g s), g = w d_y; and a run's share in d_w = sum over vectors of d_y s r."""
    first, d = tl.program_id(0).to(tl.int64) * RUN, tl.arange(0, BD)
    real = d < D
    w = tl.load(weight + d, mask=real, other=0.0).to(tl.float32)
    total = tl.zeros((BD,), dtype=tl.float32)
    for row in range(first, tl.minimum(first + RUN, R)):
        own = tl.load(x + row * (x_row * STEP) + d, mask=real, other=0.0).to(tl.float32)
        gate = tl.load(z + row * (z_row * STEP) + d, mask=real, other=0.0).to(tl.float32)
        upper = tl.load(d_y + row * D + d, mask=real, other=0.0).to(tl.float32)
        opened = tl.sigmoid(gate)
        silu = gate * opened
        s = own * silu
        g = upper * w
        r = tl.rsqrt(tl.sum(s * s, 0) / D + epsilon)
        d_s = r * (g - s * (r * r * (tl.sum(g * s, 0) / D)))
        total += upper * s * r
        tl.store(d_x + row * D + d, (d_s * silu).to(d_x.dtype.element_ty), mask=real)
        slope = opened * (1 + gate * (1 - opened))
        tl.store(d_z + row * D + d, (d_s * own * slope).to(d_z.dtype.element_ty), mask=real)
    tl.store(shares + tl.program_id(0).to(tl.int64) * D + d, total, mask=real)


def gated_norm_forward(x: Tensor, z: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """y (R, D) in the number type of x, of x and z (R, D) in any layout whose last axis lies side by side."""
    x, z = dense(x), dense(z)
    (rows, width), step = x.shape, step_of(x.stride(0), z.stride(0))
    y, block = x.new_empty(x.shape), triton.next_power_of_2(width)
    _forward[(rows,)](
        x, z, weight, y, epsilon, x.stride(0) // step, z.stride(0) // step, width, step, block, num_warps=_warps(block)
    )
    return y


def gated_norm_backward(
    d_y: Tensor, x: Tensor, z: Tensor, weight: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, z and the weight. Runs write their shares: no atomics, the same sum every time."""
    d_y, x, z = d_y.contiguous(), dense(x), dense(z)
    (rows, width), step = x.shape, step_of(x.stride(0), z.stride(0))
    d_x, d_z, block = x.new_empty(x.shape), z.new_empty(z.shape), triton.next_power_of_2(width)
    shares = torch.empty(triton.cdiv(rows, RUN), width, dtype=torch.float32, device=x.device)
    _backward[(len(shares),)](
        x, z, weight, d_y, d_x, d_z, shares, epsilon, rows, x.stride(0) // step, z.stride(0) // step,
        width, step, block, RUN, num_warps=_warps(block),
    )  # fmt: skip
    return d_x, d_z, shares.sum(0).to(weight.dtype)


def _warps(block: int) -> int:
    return min(8, max(1, block // 512))
