"""Short causal convolution with SiLU as two Triton kernels, for CUDA devices; imported on first use only.

What a token sees are the places `seen` = the last W - 1 inputs before the chunk, then the chunk's own; both are read
where they lie. The backward pass makes the convolution again and keeps nothing but the inputs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_T, BLOCK_E = 16, 128


@triton.jit
def _seen(x, recent, row, place, e, real, T, E, x_row, x_time, W: tl.constexpr, STEP: tl.constexpr):
    """seen[place] in float32; zero outside."""
    old = tl.load(
        recent + (row * (W - 1) + place[:, None]) * E + e[None, :],
        mask=(place >= 0)[:, None] & (place < W - 1)[:, None] & real[None, :],
        other=0.0,
    )
    t = place - (W - 1)
    new = tl.load(
        x + row * (x_row * STEP) + t[:, None] * (x_time * STEP) + e[None, :],
        mask=(t >= 0)[:, None] & (t < T)[:, None] & real[None, :],
        other=0.0,
    )
    return old.to(tl.float32) + new.to(tl.float32)


@triton.jit
def _before_silu(x, recent, weight, bias, row, t, e, real, T, E, x_row, x_time, W: tl.constexpr, STEP: tl.constexpr):
    """b + sum_j w_j seen_(t+j)."""
    total = tl.load(bias + e, mask=real, other=0.0).to(tl.float32)[None, :]
    for j in tl.static_range(W):
        w = tl.load(weight + e * W + j, mask=real, other=0.0).to(tl.float32)
        total += w[None, :] * _seen(x, recent, row, t + j, e, real, T, E, x_row, x_time, W, STEP)
    return total


@triton.jit
def _forward(
    x, recent, weight, bias, y, T, E, x_row, x_time,
    W: tl.constexpr, STEP: tl.constexpr, BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(2).to(tl.int64)
    t = tl.program_id(1) * BT + tl.arange(0, BT)
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    real = e < E
    total = _before_silu(x, recent, weight, bias, row, t, e, real, T, E, x_row, x_time, W, STEP)
    out = total * tl.sigmoid(total)
    to = y + (row * T + t[:, None]) * E + e[None, :]
    tl.store(to, out.to(y.dtype.element_ty), mask=(t < T)[:, None] & real[None, :])


@triton.jit
def _backward(
    x, recent, weight, bias, d_y, d_x, d_recent, d_weight, d_bias, T, E, x_row, x_time,
    W: tl.constexpr, STEP: tl.constexpr, BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """d seen_i = sum_j w_j g_(i-j), g_t the gradient before SiLU at token t; and this block's share in d_w and d_b."""
    row, block = tl.program_id(2).to(tl.int64), tl.program_id(1)
    place = block * BT + tl.arange(0, BT)
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    real = e < E
    total = tl.zeros((BT, BE), dtype=tl.float32)
    share = (row * tl.num_programs(1) + block) * E + e
    for j in tl.static_range(W):
        t = place - j
        inside = (t >= 0)[:, None] & (t < T)[:, None] & real[None, :]
        before = _before_silu(x, recent, weight, bias, row, t, e, real, T, E, x_row, x_time, W, STEP)
        g = tl.load(d_y + (row * T + t[:, None]) * E + e[None, :], mask=inside, other=0.0).to(tl.float32)
        gate = tl.sigmoid(before)
        g *= gate * (1 + before * (1 - gate))
        w = tl.load(weight + e * W + j, mask=real, other=0.0).to(tl.float32)
        total += w[None, :] * g
        # g_(i-j) seen_i, over all places i of all blocks, is the gradient of w_j; with j = 0, of g alone, that of b.
        own = tl.sum(g * _seen(x, recent, row, place, e, real, T, E, x_row, x_time, W, STEP), 0)
        tl.store(d_weight + share * W + j, own, mask=real)
        if j == 0:
            tl.store(d_bias + share, tl.sum(g, 0), mask=real)
    t = place - (W - 1)
    to = d_x + (row * T + t[:, None]) * E + e[None, :]
    tl.store(to, total.to(d_x.dtype.element_ty), mask=(t >= 0)[:, None] & (t < T)[:, None] & real[None, :])
    to = d_recent + (row * (W - 1) + place[:, None]) * E + e[None, :]
    tl.store(to, total.to(d_recent.dtype.element_ty), mask=(place < W - 1)[:, None] & real[None, :])


def convolution_forward(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """silu(conv(x)) (B, T, E) in the number type of x, any layout whose channels lie side by side."""
    x, recent, weight = _dense(x), recent.contiguous(), weight.contiguous()
    batch, length, width = x.shape
    y = x.new_empty(x.shape)
    grid = (triton.cdiv(width, BLOCK_E), triton.cdiv(length, BLOCK_T), batch)
    step = _step(x)
    _forward[grid](
        x, recent, weight, bias, y, length, width, x.stride(0) // step, x.stride(1) // step,
        weight.shape[1], step, BLOCK_T, BLOCK_E, num_warps=4,
    )  # fmt: skip
    return y


def convolution_backward(
    d_y: Tensor, x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, recent, weight and bias. Blocks write their shares: no atomics, the same sum every time."""
    d_y, x, recent, weight = d_y.contiguous(), _dense(x), recent.contiguous(), weight.contiguous()
    batch, length, width = x.shape
    window = weight.shape[1]
    blocks, step = triton.cdiv(length + window - 1, BLOCK_T), _step(x)
    d_x, d_recent = x.new_empty(x.shape), recent.new_empty(recent.shape)
    d_weight = torch.empty(batch * blocks, width, window, dtype=torch.float32, device=x.device)
    d_bias = torch.empty(batch * blocks, width, dtype=torch.float32, device=x.device)
    _backward[(triton.cdiv(width, BLOCK_E), blocks, batch)](
        x, recent, weight, bias, d_y, d_x, d_recent, d_weight, d_bias, length, width, x.stride(0) // step,
        x.stride(1) // step, window, step, BLOCK_T, BLOCK_E, num_warps=4,
    )  # fmt: skip
    return d_x, d_recent, d_weight.sum(0).to(weight.dtype), d_bias.sum(0).to(bias.dtype)


def _step(x: Tensor) -> int:
    """Strides are passed as multiples of it, from which Triton knows that 16 bytes can be read at once."""
    return 8 if x.stride(0) % 8 == 0 and x.stride(1) % 8 == 0 else 1


def _dense(t: Tensor) -> Tensor:
    return t if t.stride(-1) == 1 else t.contiguous()
