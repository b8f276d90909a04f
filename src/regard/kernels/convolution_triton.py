"""Short causal convolution with SiLU as two Triton kernels, for CUDA devices; imported on first use only.

What a token sees are the places `seen` = the last W - 1 inputs before the chunk, then the chunk's own; both are read
where they lie. A program walks over a run of tokens with their window in registers, so that every place is read once,
and many at a time. The backward pass makes the convolution again and keeps nothing but the inputs.
"""

# ruff: noqa: RUF005 (Triton takes no star in a tuple)

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.layout import dense, step_of


@dataclass(frozen=True)
class Launch:
    """run: tokens that a program walks over. block: channels of a program. warps: of a program. ahead: tokens that are
    read at once, which divides the run."""

    run: int = 64
    block: int = 128
    warps: int = 1
    ahead: int = 8


LAUNCH = Launch()


@triton.jit
def _weights(weight, e, real, W: tl.constexpr):
    weights = ()
    for j in tl.static_range(W):
        weights = weights + (tl.load(weight + e * W + j, mask=real, other=0.0).to(tl.float32),)
    return weights


@triton.jit
def _window(x, recent, row, first, e, real, T, E, x_row, x_time, W: tl.constexpr, STEP: tl.constexpr):
    """What token `first` sees but its own input, after a place that it does not see."""
    window = (tl.zeros_like(e).to(tl.float32),)
    for j in tl.static_range(W - 1):
        t = first - (W - 1) + j
        old = tl.load(recent + (row * (W - 1) + first + j) * E + e, mask=real & (t < 0), other=0.0)
        new = tl.load(x + row * (x_row * STEP) + t * (x_time * STEP) + e, mask=real & (t >= 0) & (t < T), other=0.0)
        window = window + (old.to(tl.float32) + new.to(tl.float32),)
    return window


@triton.jit
def _before_silu(window, weights, bias, W: tl.constexpr):
    """b + sum_j w_j seen_(t+j)."""
    total = bias
    for j in tl.static_range(W):
        total += weights[j] * window[j]
    return total


@triton.jit
def _forward(
    x, recent, weight, bias, y, T, E, x_row, x_time,
    W: tl.constexpr, STEP: tl.constexpr, RUN: tl.constexpr, BE: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    row, first = tl.program_id(2).to(tl.int64), tl.program_id(1).to(tl.int64) * RUN
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    real = e < E
    weights = _weights(weight, e, real, W)
    offset = tl.load(bias + e, mask=real, other=0.0).to(tl.float32)
    window = _window(x, recent, row, first, e, real, T, E, x_row, x_time, W, STEP)
    x += row * (x_row * STEP) + first * (x_time * STEP)
    y += (row * T + first) * E
    for i in range(0, tl.minimum(RUN, T - first).to(tl.int32), AHEAD):
        news = ()
        for a in tl.static_range(AHEAD):
            now = real & (first + i + a < T)
            news = news + (tl.load(x + (i + a) * (x_time * STEP) + e, mask=now, other=0.0),)
        for a in tl.static_range(AHEAD):
            window = window[1:] + (news[a].to(tl.float32),)
            total = _before_silu(window, weights, offset, W)
            out = total * tl.sigmoid(total)
            tl.store(y + (i + a) * E + e, out.to(y.dtype.element_ty), mask=real & (first + i + a < T))


@triton.jit
def _slope(upper, window, weights, bias, W: tl.constexpr):
    """The gradient before SiLU."""
    before = _before_silu(window, weights, bias, W)
    gate = tl.sigmoid(before)
    return upper.to(tl.float32) * (gate * (1 + before * (1 - gate)))


@triton.jit
def _added(sums, g, window, W: tl.constexpr):
    """The gradients of w_j, to which a token adds g_t seen_(t+j), then that of b."""
    more = ()
    for j in tl.static_range(W):
        more = more + (sums[j] + g * window[j],)
    return more + (sums[W] + g,)


@triton.jit
def _passed_on(slopes, weights, W: tl.constexpr):
    """d seen_i = sum_j w_j g_(i-j), slopes being those up to g_i."""
    total = weights[0] * slopes[W - 1]
    for j in tl.static_range(1, W):
        total += weights[j] * slopes[W - 1 - j]
    return total


@triton.jit
def _backward(
    x, recent, weight, bias, d_y, d_x, d_recent, shares, T, E, x_row, x_time,
    W: tl.constexpr, STEP: tl.constexpr, RUN: tl.constexpr, BE: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Gradients of a run of inputs, which W - 1 tokens after it see too, and the run's share in those of w and b."""
    row, first = tl.program_id(2).to(tl.int64), tl.program_id(1).to(tl.int64) * RUN
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    real = e < E
    weights = _weights(weight, e, real, W)
    offset = tl.load(bias + e, mask=real, other=0.0).to(tl.float32)
    window = _window(x, recent, row, first, e, real, T, E, x_row, x_time, W, STEP)
    x += row * (x_row * STEP) + first * (x_time * STEP)
    d_y += (row * T + first) * E
    d_x += (row * T + first) * E
    zero = tl.zeros_like(offset)
    slopes, sums = (zero,) * W, (zero,) * (W + 1)
    for j in tl.static_range(W - 1):
        now = real & (first + j < T)
        window = window[1:] + (tl.load(x + j * (x_time * STEP) + e, mask=now, other=0.0).to(tl.float32),)
        g = _slope(tl.load(d_y + j * E + e, mask=now, other=0.0), window, weights, offset, W)
        slopes, sums = slopes[1:] + (g,), _added(sums, g, window, W)
        to = d_recent + (row * (W - 1) + j) * E + e
        tl.store(to, _passed_on(slopes, weights, W).to(d_recent.dtype.element_ty), mask=real & (first == 0))
    for i in range(0, tl.minimum(RUN, T - first).to(tl.int32), AHEAD):
        news, uppers = (), ()
        for a in tl.static_range(AHEAD):
            after = i + a + W - 1
            now = real & (first + after < T)
            news = news + (tl.load(x + after * (x_time * STEP) + e, mask=now, other=0.0),)
            uppers = uppers + (tl.load(d_y + after * E + e, mask=now, other=0.0),)
        for a in tl.static_range(AHEAD):
            window = window[1:] + (news[a].to(tl.float32),)
            g = _slope(uppers[a], window, weights, offset, W)
            slopes = slopes[1:] + (g,)
            # The tokens after the run are counted where they belong.
            sums = _added(sums, tl.where(i + a + W - 1 < RUN, g, 0.0), window, W)
            total = _passed_on(slopes, weights, W)
            tl.store(d_x + (i + a) * E + e, total.to(d_x.dtype.element_ty), mask=real & (first + i + a < T))
    shares += (row * tl.num_programs(1) + tl.program_id(1)) * (W + 1) * E
    for j in tl.static_range(W + 1):
        tl.store(shares + j * E + e, sums[j], mask=real)


def convolution_forward(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """silu(conv(x)) (B, T, E) in the number type of x, any layout whose channels lie side by side."""
    x, recent, weight = dense(x), recent.contiguous(), weight.contiguous()
    (batch, length, width), step, launch = x.shape, step_of(*x.stride()[:2]), LAUNCH
    y = x.new_empty(x.shape)
    _forward[(triton.cdiv(width, launch.block), triton.cdiv(length, launch.run), batch)](
        x, recent, weight, bias, y, length, width, x.stride(0) // step, x.stride(1) // step,
        weight.shape[1], step, launch.run, launch.block, launch.ahead, num_warps=launch.warps,
    )  # fmt: skip
    return y


def convolution_backward(
    d_y: Tensor, x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, recent, weight and bias. Runs write their shares: no atomics, the same sum every time."""
    d_y, x, recent, weight = d_y.contiguous(), dense(x), recent.contiguous(), weight.contiguous()
    (batch, length, width), window, step, launch = x.shape, weight.shape[1], step_of(*x.stride()[:2]), LAUNCH
    # A token of the run's beginning is of the run: no run is shorter than a window.
    run = max(launch.run, triton.next_power_of_2(window))
    runs = triton.cdiv(length, run)
    d_x, d_recent = x.new_empty(x.shape), recent.new_empty(recent.shape)
    shares = torch.empty(batch * runs, window + 1, width, dtype=torch.float32, device=x.device)
    _backward[(triton.cdiv(width, launch.block), runs, batch)](
        x, recent, weight, bias, d_y, d_x, d_recent, shares, length, width, x.stride(0) // step,
        x.stride(1) // step, window, step, run, launch.block, launch.ahead, num_warps=launch.warps,
    )  # fmt: skip
    *d_weight, d_bias = shares.sum(0).unbind(0)
    return d_x, d_recent, torch.stack(d_weight, 1).to(weight.dtype), d_bias.to(bias.dtype)
