"""The selective scan as Triton kernels, for CUDA devices; imported on first use only.

Tokens are cut into chunks, and all chunks work at once: each finds what it would leave from an empty state, the states
walk over the chunks, and each chunk goes through its tokens from the state before it, as the scan of Gu and Dao 2023
does, with the state in registers. The backward pass does the same from the last chunk with the gradient of the state,
and makes the states of a few tokens at a time again. It keeps nothing but the inputs.
Glossary: kernels/selective_scan.py.

FUSED: the steps are given before softplus, and the output is (y + D u) silu(z), z being the gate.
a comes to the kernels as A / ln 2, for powers of two are what the device has an instruction for.
One program holds the N states of a block of channels, one warp wide, so that a channel's states lie in one thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True)
class Launch:
    """chunk: tokens that a program goes through. few: of which the states are made again at a time, which divides it.
    block: channels of a program. warps: of a program."""

    chunk: int = 64
    few: int = 4
    block: int = 32
    warps: int = 1


LAUNCH = Launch()
LN2 = tl.constexpr(math.log(2))


@triton.jit
def _softplus(raw, steps, size, BLOCK: tl.constexpr):
    """max(v, 0) + log(1 + exp(-|v|)), without what 1 + exp(-|v|) has lost, which for short steps is most of it."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(raw + at, mask=at < size, other=0.0).to(tl.float32)
    small = tl.exp(-tl.abs(v))
    rounded = 1.0 + small
    lost = small / tl.where(rounded == 1.0, 1.0, rounded - 1.0)
    rest = tl.where(rounded == 1.0, small, tl.log(rounded) * lost)
    tl.store(steps + at, tl.maximum(v, 0.0) + rest, mask=at < size)


@triton.jit
def _ends(
    u, dt, a, b, z, ends, sums, T, E, M, u_row, u_time, b_row, b_time, z_row, z_time,
    N: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, CHUNK: tl.constexpr, FUSED: tl.constexpr, BACK: tl.constexpr,
):  # fmt: skip
    """What a chunk leaves from an empty state, and the sum of its steps.

    BACK: the gradient before the chunk when there is none after it, with d_y for u and C for b.
    """
    block, m, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    e = block * BE + tl.arange(0, BE)
    n = tl.arange(0, BN)
    real = e < E
    held = (n < N)[:, None] & real[None, :]
    rates = tl.load(a + e[None, :] * N + n[:, None], mask=held, other=0.0)
    h = tl.zeros((BN, BE), dtype=tl.float32)
    total = tl.zeros((BE,), dtype=tl.float32)
    first = m * CHUNK
    size = tl.minimum(CHUNK, T - first)
    for i in range(size):
        t = first + size - 1 - i if BACK else first + i
        step = tl.load(dt + (row * T + t) * E + e, mask=real, other=0.0).to(tl.float32)
        x = tl.load(u + row * u_row + t * u_time + e, mask=real, other=0.0).to(tl.float32)
        map_ = tl.load(b + row * b_row + t * b_time + n, mask=n < N, other=0.0).to(tl.float32)
        decay = tl.exp2(step[None, :] * rates)
        if BACK:
            if FUSED:
                gate = tl.load(z + row * z_row + t * z_time + e, mask=real, other=0.0).to(tl.float32)
                x *= gate * tl.sigmoid(gate)
            h = decay * (h + x[None, :] * map_[:, None])
        else:
            h = decay * h + (step * x)[None, :] * map_[:, None]
        total += step
    place = (row * M + m) * E
    tl.store(ends + (place + e[None, :]) * N + n[:, None], h, mask=held)
    tl.store(sums + place + e, total, mask=real)


@triton.jit
def _walk(
    a, first, ends, sums, last, E, M, N: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, BACK: tl.constexpr
):  # fmt: skip
    """Writes the state before each chunk in the place of what the chunk leaves; BACK: the gradient after it."""
    row = tl.program_id(1).to(tl.int64)
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    n = tl.arange(0, BN)
    held = (n < N)[None, :] & (e < E)[:, None]
    place = e[:, None] * N + n[None, :]
    rates = tl.load(a + place, mask=held, other=0.0)
    h = tl.load(first + row * E * N + place, mask=held, other=0.0)
    for i in range(M):
        m = M - 1 - i if BACK else i
        at = ends + (row * M + m) * E * N + place
        end = tl.load(at, mask=held, other=0.0)
        total = tl.load(sums + (row * M + m) * E + e, mask=e < E, other=0.0)
        tl.store(at, h, mask=held)
        h = tl.exp2(total[:, None] * rates) * h + end
    tl.store(last + row * E * N + place, h, mask=held)


@triton.jit
def _outputs(
    u, dt, a, b, c, skip, z, befores, y, T, E, M, u_row, u_time, b_row, b_time, c_row, c_time, z_row, z_time,
    N: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, CHUNK: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    block, m, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    e = block * BE + tl.arange(0, BE)
    n = tl.arange(0, BN)
    real = e < E
    held = (n < N)[:, None] & real[None, :]
    rates = tl.load(a + e[None, :] * N + n[:, None], mask=held, other=0.0)
    h = tl.load(befores + ((row * M + m) * E + e[None, :]) * N + n[:, None], mask=held, other=0.0)
    first = m * CHUNK
    for t in range(first, tl.minimum(first + CHUNK, T)):
        at = (row * T + t) * E + e
        step = tl.load(dt + at, mask=real, other=0.0).to(tl.float32)
        x = tl.load(u + row * u_row + t * u_time + e, mask=real, other=0.0).to(tl.float32)
        write = tl.load(b + row * b_row + t * b_time + n, mask=n < N, other=0.0).to(tl.float32)
        read = tl.load(c + row * c_row + t * c_time + n, mask=n < N, other=0.0).to(tl.float32)
        h = tl.exp2(step[None, :] * rates) * h + (step * x)[None, :] * write[:, None]
        out = tl.sum(h * read[:, None], 0)
        if FUSED:
            gate = tl.load(z + row * z_row + t * z_time + e, mask=real, other=0.0).to(tl.float32)
            out += tl.load(skip + e, mask=real, other=0.0).to(tl.float32) * x
            out *= gate * tl.sigmoid(gate)
        tl.store(y + at, out.to(y.dtype.element_ty), mask=real)


@triton.jit
def _gradients(
    u, raw, dt, a, b, c, skip, z, befores, afters, d_y, scratch, d_u, d_dt, d_a, d_b, d_c, d_skip, d_z, T, E, M,
    u_row, u_time, b_row, b_time, c_row, c_time, z_row, z_time,
    N: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, CHUNK: tl.constexpr, FEW: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    """All gradients of a chunk. It goes forward once and leaves the state before every FEW tokens in scratch; then back
    from the last few, whose states it makes again and holds in registers."""
    block, m, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    e = block * BE + tl.arange(0, BE)
    n = tl.arange(0, BN)
    real = e < E
    held = (n < N)[:, None] & real[None, :]
    rates = tl.load(a + e[None, :] * N + n[:, None], mask=held, other=0.0)
    place = ((row * M + m) * E + e[None, :]) * N + n[:, None]
    h = tl.load(befores + place, mask=held, other=0.0)
    g = tl.load(afters + place, mask=held, other=0.0)
    first = m * CHUNK
    own = scratch + ((row * M + m) * (CHUNK // FEW) * E + e[None, :]) * N + n[:, None]
    fews = (tl.minimum(CHUNK, T - first) + FEW - 1) // FEW
    for i in range(fews):
        tl.store(own + i * E * N, h, mask=held)
        for j in tl.static_range(FEW):
            t = first + i * FEW + j
            now = real & (t < T)
            step = tl.load(dt + (row * T + t) * E + e, mask=now, other=0.0).to(tl.float32)
            x = tl.load(u + row * u_row + t * u_time + e, mask=now, other=0.0).to(tl.float32)
            write = tl.load(b + row * b_row + t * b_time + n, mask=(n < N) & (t < T), other=0.0).to(tl.float32)
            h = tl.exp2(step[None, :] * rates) * h + (step * x)[None, :] * write[:, None]
    # What one thread wrote to scratch another may read.
    tl.debug_barrier()
    passes = tl.load(skip + e, mask=real, other=0.0).to(tl.float32) if FUSED else tl.zeros((BE,), dtype=tl.float32)
    grad_a = tl.zeros((BN, BE), dtype=tl.float32)
    grad_skip = tl.zeros((BE,), dtype=tl.float32)
    for back in range(fews):
        i = fews - 1 - back
        h = tl.load(own + i * E * N, mask=held, other=0.0)
        states = (h,)
        for j in tl.static_range(FEW):
            t = first + i * FEW + j
            now = real & (t < T)
            step = tl.load(dt + (row * T + t) * E + e, mask=now, other=0.0).to(tl.float32)
            x = tl.load(u + row * u_row + t * u_time + e, mask=now, other=0.0).to(tl.float32)
            write = tl.load(b + row * b_row + t * b_time + n, mask=(n < N) & (t < T), other=0.0).to(tl.float32)
            h = tl.exp2(step[None, :] * rates) * h + (step * x)[None, :] * write[:, None]
            states = states + (h,)  # noqa: RUF005, as Triton takes no star
        for j in tl.static_range(FEW - 1, -1, -1):
            t = first + i * FEW + j
            now = real & (t < T)
            at = (row * T + t) * E + e
            step = tl.load(dt + at, mask=now, other=0.0).to(tl.float32)
            x = tl.load(u + row * u_row + t * u_time + e, mask=now, other=0.0).to(tl.float32)
            write = tl.load(b + row * b_row + t * b_time + n, mask=(n < N) & (t < T), other=0.0).to(tl.float32)
            read = tl.load(c + row * c_row + t * c_time + n, mask=(n < N) & (t < T), other=0.0).to(tl.float32)
            upper = tl.load(d_y + at, mask=now, other=0.0).to(tl.float32)
            if FUSED:
                gate = tl.load(z + row * z_row + t * z_time + e, mask=now, other=0.0).to(tl.float32)
                opened = tl.sigmoid(gate)
                out = tl.sum(states[j + 1] * read[:, None], 0) + passes * x
                grad_gate = upper * out * opened * (1 + gate * (1 - opened))
                tl.store(d_z + at, grad_gate.to(d_z.dtype.element_ty), mask=now)
                upper *= gate * opened
                grad_skip += upper * x
            g += upper[None, :] * read[:, None]
            shared = (((row * tl.num_programs(0) + block) * T) + t) * N + n
            tl.store(d_c + shared, tl.sum(upper[None, :] * states[j + 1], 1), mask=(n < N) & (t < T))
            tl.store(d_b + shared, tl.sum((step * x)[None, :] * g, 1), mask=(n < N) & (t < T))
            product = tl.sum(g * write[:, None], 0)
            g *= tl.exp2(step[None, :] * rates)
            exponent = g * states[j]
            grad_step = product * x + tl.sum(exponent * rates, 0) * LN2
            if FUSED:
                grad_step *= tl.sigmoid(tl.load(raw + at, mask=now, other=0.0).to(tl.float32))
            tl.store(d_dt + at, grad_step.to(d_dt.dtype.element_ty), mask=now)
            tl.store(d_u + at, (product * step + passes * upper).to(d_u.dtype.element_ty), mask=now)
            grad_a += exponent * step[None, :]
    tl.store(d_a + place, grad_a, mask=held)
    tl.store(d_skip + (row * M + m) * E + e, grad_skip, mask=real)


def _steps(dt: Tensor, fused: bool) -> Tensor:
    """What the kernels take for dt, made anew in the backward pass."""
    if not fused:
        return dt
    steps, block = torch.empty_like(dt, dtype=torch.float32), 1024
    _softplus[(triton.cdiv(dt.numel(), block),)](dt, steps, dt.numel(), block, num_warps=4)
    return steps


def _dense(*tensors: Tensor) -> list[Tensor]:
    """Any layout whose last axis lies side by side."""
    return [t if t.stride(-1) == 1 else t.contiguous() for t in tensors]


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
    _ends[(blocks, chunks, batch)](
        u, dt, a, b, gate, ends, sums, length, width, chunks, *u.stride()[:2], *b.stride()[:2], *gate.stride()[:2],
        states, padded, launch.block, launch.chunk, z is not None, back, num_warps=launch.warps,
    )  # fmt: skip
    _walk[(blocks, batch)](a, first, ends, sums, last, width, chunks, states, padded, launch.block, back, num_warps=4)
    return ends, last


def scan_forward(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor | None, z: Tensor | None,
    launch: Launch,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """y in the number type of u, and the last state in float32; fused where skip and z are given."""
    u, b, c = _dense(u, b, c)
    gate = u if z is None else _dense(z)[0]
    dt, a, h = dt.contiguous(), (a.float() / math.log(2)).contiguous(), h.float().contiguous()
    dt = _steps(dt, z is not None)
    (batch, length, width), states = u.shape, a.shape[1]
    befores, last = _borders(u, dt, a, b, None if z is None else gate, h, launch, False)
    y = u.new_empty(u.shape)
    _outputs[(triton.cdiv(width, launch.block), befores.shape[1], batch)](
        u, dt, a, b, c, u if skip is None else skip, gate, befores, y, length, width, befores.shape[1],
        *u.stride()[:2], *b.stride()[:2], *c.stride()[:2], *gate.stride()[:2], states,
        triton.next_power_of_2(states), launch.block, launch.chunk, z is not None, num_warps=launch.warps,
    )  # fmt: skip
    return y, last


def scan_backward(
    d_y: Tensor, d_last: Tensor, u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor,
    skip: Tensor | None, z: Tensor | None, launch: Launch,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of u, dt, a, b, c, h, skip and z; the last two are empty where there is nothing fused.

    Blocks of channels write their shares of B's and C's, chunks of A's: no atomics, the same sum every time.
    """
    u, b, c = _dense(u, b, c)
    gate = u if z is None else _dense(z)[0]
    raw, a, h, d_y, d_last = (t.contiguous() for t in (dt, a.float() / math.log(2), h.float(), d_y, d_last.float()))
    dt = _steps(raw, z is not None)
    (batch, length, width), states = u.shape, a.shape[1]
    fused = None if z is None else gate
    befores, _ = _borders(u, dt, a, b, fused, h, launch, False)
    afters, d_h = _borders(d_y, dt, a, c, fused, d_last, launch, True)
    chunks, blocks = befores.shape[1], triton.cdiv(width, launch.block)
    scratch = befores.new_empty(batch, chunks, launch.chunk // launch.few, width, states)
    d_u, d_dt, d_z = (t.new_empty(t.shape) for t in (u, raw, gate if z is not None else u[:0]))
    d_a, d_skip = torch.empty_like(befores), befores.new_empty(batch, chunks, width)
    d_b, d_c = (befores.new_empty(batch, blocks, length, states) for _ in range(2))
    _gradients[(blocks, chunks, batch)](
        u, raw, dt, a, b, c, u if skip is None else skip, gate, befores, afters, d_y, scratch, d_u, d_dt, d_a, d_b,
        d_c, d_skip, d_z, length, width, chunks, *u.stride()[:2], *b.stride()[:2], *c.stride()[:2], *gate.stride()[:2],
        states, triton.next_power_of_2(states), launch.block, launch.chunk, launch.few, z is not None,
        num_warps=launch.warps,
    )  # fmt: skip
    d_skip = d_skip.sum((0, 1)) if skip is not None else d_skip[:0]
    return d_u, d_dt, d_a.sum((0, 1)), d_b.sum(1), d_c.sum(1), d_h, d_skip, d_z
