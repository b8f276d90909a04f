"""y = g(s x W^T + b) + r of few rows x, as one Triton kernel; imported on first use only.

s is a scale for each output, of weights in 8 bits (kernels/int8.py), or 1.

Few rows are as many reads of W as one: what counts is that every processor of the card has many of them under way. A
program takes a few rows of W from end to end, keeps one running sum in float32 for each number that it holds and adds
these up once at the end.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels import choice

WARPS = 4
K_BLOCK = 1024  # numbers of a row of W at a time, at most
MOST_SUMS = 8192  # of a program
PROGRAMS = 4  # for each processor, at least, before a program takes more rows of W
MOST_UNROLLED = 4


@triton.jit
def activated(y, ACTIVATION: tl.constexpr):
    if ACTIVATION == "gelu_tanh":
        y = y * tl.sigmoid(1.5957691216057308 * (y + 0.044715 * y * y * y))
    elif ACTIVATION == "gelu":
        y = 0.5 * y * (1.0 + tl.erf(y * 0.7071067811865476))
    elif ACTIVATION == "silu":
        y = y * tl.sigmoid(y)
    elif ACTIVATION == "relu":
        y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
    elif ACTIVATION == "relu_squared":
        y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
        y = y * y
    elif ACTIVATION == "tanh":
        y = 2.0 * tl.sigmoid(2.0 * y) - 1.0
    return y


@triton.jit
def _products(w, x, M_PAD: tl.constexpr):
    """Every number of w (N, K) times those of x (M, K); (N, K) of a single row, else (M, N, K)."""
    return w.to(tl.float32) * x if M_PAD == 1 else w.to(tl.float32)[None, :, :] * x[:, None, :]


@triton.jit
def _linear(
    x, weight, scale, bias, residual, y, n, x_row,
    K: tl.constexpr, M: tl.constexpr, M_PAD: tl.constexpr, N_BLOCK: tl.constexpr, K_BLOCK: tl.constexpr,
    UNROLL: tl.constexpr, HAS_SCALE: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * N_BLOCK + tl.arange(0, N_BLOCK)
    k, m = tl.arange(0, K_BLOCK), tl.arange(0, M_PAD)
    real = row < n
    begin = weight + row.to(tl.int64)[:, None] * K + k[None, :]
    first = tl.load(begin, mask=real[:, None] & (k < K)[None, :], other=0)
    place = m[:, None].to(tl.int64) * n + row[None, :]
    there = (m < M)[:, None] & real[None, :]
    # What is needed last is asked for now as well: each wait for memory is as long as the rest of the kernel.
    if HAS_SCALE:
        scales = tl.load(scale + row, mask=real, other=0.0)
    if HAS_BIAS:
        biases = tl.load(bias + row, mask=real, other=0.0).to(tl.float32)
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    if HAS_RESIDUAL:
        beside = tl.load(residual + place, mask=there, other=0.0).to(tl.float32)
    x += m[:, None] * x_row
    inputs = tl.load(x + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0).to(tl.float32)
    sums = _products(first, inputs, M_PAD)
    for start in range(K_BLOCK, K, K_BLOCK * UNROLL):
        for i in tl.static_range(UNROLL):
            at = start + i * K_BLOCK + k
            w = tl.load(begin + (start + i * K_BLOCK), mask=real[:, None] & (at < K)[None, :], other=0)
            inputs = tl.load(x + at[None, :], mask=(m < M)[:, None] & (at < K)[None, :], other=0.0).to(tl.float32)
            sums += _products(w, inputs, M_PAD)
    found = tl.sum(sums, 1)[None, :] if M_PAD == 1 else tl.sum(sums, 2)
    if HAS_SCALE:
        found *= scales[None, :]
    if HAS_BIAS:
        found += biases[None, :]
    found = activated(found, ACTIVATION)
    if HAS_RESIDUAL:
        found += beside
    tl.store(y + place, found.to(y.dtype.element_ty), mask=there)


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    activation: str | None,
    residual: Tensor | None,
    scale: Tensor | None = None,
) -> Tensor:
    """x (..., K), W (N, K), residual (..., N) or None; scale (N,) in float32 of weights in 8 bits."""
    n, width = weight.shape
    rows = x.reshape(-1, width)
    rows = rows if rows.stride(-1) == 1 else rows.contiguous()
    y = x.new_empty(*x.shape[:-1], n)
    n_block, k_block = _blocks(len(rows), n, width, x.device)
    steps = -(-width // k_block) - 1
    early = choice.launches_early(x.device)
    _linear[(triton.cdiv(n, n_block),)](
        rows, weight, y if scale is None else scale, y if bias is None else bias,
        y if residual is None else residual.contiguous(), y, n, rows.stride(0),
        K=width, M=len(rows), M_PAD=triton.next_power_of_2(len(rows)), N_BLOCK=n_block, K_BLOCK=k_block,
        UNROLL=max(1, min(steps, MOST_UNROLLED)), HAS_SCALE=scale is not None, HAS_BIAS=bias is not None,
        HAS_RESIDUAL=residual is not None, ACTIVATION=activation or "none", EARLY=early, num_warps=WARPS,
        launch_pdl=early,
    )  # fmt: skip
    return y


def _blocks(m: int, n: int, k: int, device: torch.device) -> tuple[int, int]:
    """Rows of W that a program takes, and how much of them at a time."""
    k_block = min(K_BLOCK, max(32, triton.next_power_of_2(k)))
    most = max(1, MOST_SUMS // (k_block * triton.next_power_of_2(m)))
    wanted = max(1, n // (PROGRAMS * choice.processors(device)))
    return min(most, 1 << (wanted.bit_length() - 1)), k_block
