"""How the selective scan's kernels are launched; imported on first use only, with Triton.

The forward pass is four launches: the steps, what each chunk leaves, the walk over the chunks, and the outputs. The
backward pass is given the states between chunks; it walks back with their gradients, then makes all the others.
"""

from __future__ import annotations

import math

import torch
import triton
from torch import Tensor

from regard.kernels.layout import dense
from regard.kernels.selective_scan import Launch
from regard.kernels.selective_scan_triton import (
    ends_kernel,
    gradients_kernel,
    outputs_kernel,
    softplus_kernel,
    walk_kernel,
)


def _steps(dt: Tensor, fused: bool) -> Tensor:
    """What the kernels take for dt, made anew in the backward pass."""
    if not fused:
        return dt
    steps, block = torch.empty_like(dt, dtype=torch.float32), 1024
    softplus_kernel[(triton.cdiv(dt.numel(), block),)](dt, steps, dt.numel(), block, num_warps=4)
    return steps


def _borders(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, z: Tensor | None, first: Tensor, launch: Launch, back: bool
) -> tuple[Tensor, Tensor]:
    """The state before each chunk (B, M, E, N) and the last; back: the gradients after each, and before the first."""
    (batch, length, width), states = u.shape, a.shape[1]
    chunks, padded = triton.cdiv(length, launch.chunk), triton.next_power_of_2(states)
    ends = torch.empty(batch, chunks, width, states, dtype=torch.float32, device=u.device)
    sums, last = ends.new_empty(batch, chunks, width), torch.empty_like(first)
    blocks = triton.cdiv(width, launch.block)
    gate = u if z is None else z
    ends_kernel[(blocks, chunks, batch)](
        u, dt, a, b, gate, ends, sums, length, width, chunks, *u.stride()[:2], *b.stride()[:2], *gate.stride()[:2],
        states, padded, launch.block, launch.chunk, launch.few, z is not None, back, num_warps=launch.warps,
    )  # fmt: skip
    walk_kernel[(blocks, batch)](
        a, first, ends, sums, last, width, chunks, states, padded, launch.block, back, num_warps=4
    )
    return ends, last


def scan_forward(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor | None, z: Tensor | None,
    launch: Launch,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """y in the number type of u, the last state in float32, and the states before the chunks (B, M, E, N).

    Fused where skip and z are given.
    """
    u, b, c = dense(u), dense(b), dense(c)
    gate = u if z is None else dense(z)
    dt, a, h = dt.contiguous(), (a.float() / math.log(2)).contiguous(), h.float().contiguous()
    dt = _steps(dt, z is not None)
    (batch, length, width), states = u.shape, a.shape[1]
    befores, last = _borders(u, dt, a, b, None if z is None else gate, h, launch, False)
    y = u.new_empty(u.shape)
    outputs_kernel[(triton.cdiv(width, launch.block), befores.shape[1], batch)](
        u, dt, a, b, c, u if skip is None else skip, gate, befores, y, length, width, befores.shape[1],
        *u.stride()[:2], *b.stride()[:2], *c.stride()[:2], *gate.stride()[:2], states,
        triton.next_power_of_2(states), launch.block, launch.chunk, launch.few, z is not None, num_warps=launch.warps,
    )  # fmt: skip
    return y, last, befores


def scan_backward(
    d_y: Tensor, d_last: Tensor, befores: Tensor, u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor,
    skip: Tensor | None, z: Tensor | None, launch: Launch,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of u, dt, a, b, c, h, skip and z; the last two are empty where there is nothing fused.

    Blocks of channels write their shares of B's and C's, chunks of A's: no atomics, the same sum every time.
    """
    u, b, c = dense(u), dense(b), dense(c)
    gate = u if z is None else dense(z)
    raw, a, d_y, d_last = (t.contiguous() for t in (dt, a.float() / math.log(2), d_y, d_last.float()))
    dt = _steps(raw, z is not None)
    (batch, length, width), states = u.shape, a.shape[1]
    afters, d_h = _borders(d_y, dt, a, c, None if z is None else gate, d_last, launch, True)
    chunks, blocks = befores.shape[1], triton.cdiv(width, launch.block)
    padded = triton.next_power_of_2(states)
    # The states of a few tokens stay in registers, which hold 64 of a channel.
    few = max(1, min(launch.few, 64 // padded))
    scratch = befores.new_empty(batch, chunks, launch.chunk // few, width, states)
    d_u, d_dt, d_z = (t.new_empty(t.shape) for t in (u, raw, gate if z is not None else u[:0]))
    d_a, d_skip = torch.empty_like(befores), befores.new_empty(batch, chunks, width)
    d_b, d_c = (befores.new_empty(batch, blocks, length, states) for _ in range(2))
    gradients_kernel[(blocks, chunks, batch)](
        u, raw, dt, a, b, c, u if skip is None else skip, gate, befores, afters, d_y, scratch, d_u, d_dt, d_a, d_b,
        d_c, d_skip, d_z, length, width, chunks, *u.stride()[:2], *b.stride()[:2], *c.stride()[:2], *gate.stride()[:2],
        states, padded, launch.block, launch.chunk, few, z is not None,
        num_warps=launch.warps, maxnreg=launch.registers,
    )  # fmt: skip
    d_skip = d_skip.sum((0, 1)) if skip is not None else d_skip[:0]
    return d_u, d_dt, d_a.sum((0, 1)), d_b.sum(1), d_c.sum(1), d_h, d_skip, d_z
