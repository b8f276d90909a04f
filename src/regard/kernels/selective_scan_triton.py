"""The selective scan as Triton kernels, for CUDA devices; imported on first use only.

Tokens are cut into chunks, and all chunks work at once: each finds what it would leave from an empty state, the states
walk over the chunks, and each chunk goes through its tokens from the state before it, as the scan of Gu and Dao 2023
does, with the state in registers. The backward pass does the same from the last chunk with the gradient of the state,
and makes the states of a few tokens at a time again. Glossary: kernels/selective_scan.py.

FUSED: the steps are given before softplus, and the output is (y + D u) silu(z), z being the gate.
a comes to the kernels as A / ln 2, for powers of two are what the device has an instruction for.
A token's work is short and a read takes long: what a FEW tokens need is read at once, before any of it is used.
"""

# ruff: noqa: RUF005 (Triton takes no star in a tuple)

from __future__ import annotations

import math

import triton
import triton.language as tl

LN2 = tl.constexpr(math.log(2))


@triton.jit
def _rows(at, apart, begin, real, size, FEW: tl.constexpr, BACK: tl.constexpr = False):
    """Rows of the tokens from begin on, or of the same from the last to the first; zero from size on."""
    rows = ()
    for j in tl.static_range(FEW):
        t = begin + (FEW - 1 - j if BACK else j)
        rows = rows + (tl.load(at + t * apart, mask=real & (t < size), other=0.0),)
    return rows


@triton.jit
def softplus(v):
    """max(v, 0) + log(1 + exp(-|v|)), without what 1 + exp(-|v|) has lost, which for short steps is most of it."""
    small = tl.exp(-tl.abs(v))
    rounded = 1.0 + small
    lost = small / tl.where(rounded == 1.0, 1.0, rounded - 1.0)
    rest = tl.where(rounded == 1.0, small, tl.log(rounded) * lost)
    return tl.maximum(v, 0.0) + rest


@triton.jit
def softplus_kernel(raw, steps, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(raw + at, mask=at < size, other=0.0).to(tl.float32)
    tl.store(steps + at, softplus(v), mask=at < size)


@triton.jit
def ends_kernel(
    u, dt, a, b, z, ends, sums, T, E, M, u_row, u_time, b_row, b_time, z_row, z_time,
    N: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, CHUNK: tl.constexpr, FEW: tl.constexpr, FUSED: tl.constexpr,
    BACK: tl.constexpr,
):  # fmt: skip
    """What a chunk leaves from an empty state, and the sum of its steps.

    BACK: the gradient before the chunk when there is none after it, with d_y for u and C for b.
    """
    block, m, row = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    e = block * BE + tl.arange(0, BE)
    n = tl.arange(0, BN)
    real = e < E
    held = (n < N)[:, None] & real[None, :]
    rates = tl.load(a + e[None, :] * N + n[:, None], mask=held, other=0.0)
    h = tl.zeros((BN, BE), dtype=tl.float32)
    total = tl.zeros((BE,), dtype=tl.float32)
    first = m * CHUNK
    size = tl.minimum(CHUNK, T - first).to(tl.int32)
    fews = (size + FEW - 1) // FEW
    dt += (row * T + first) * E + e
    u += row * u_row + first * u_time + e
    b += row * b_row + first * b_time + n
    z += row * z_row + first * z_time + e
    for i in range(fews):
        begin = (fews - 1 - i if BACK else i) * FEW
        steps = _rows(dt, E, begin, real, size, FEW, BACK)
        inputs = _rows(u, u_time, begin, real, size, FEW, BACK)
        maps = _rows(b, b_time, begin, n < N, size, FEW, BACK)
        gates = _rows(z, z_time, begin, real, size, FEW, BACK) if BACK and FUSED else inputs
        for j in tl.static_range(FEW):
            step, x, map_ = steps[j].to(tl.float32), inputs[j].to(tl.float32), maps[j].to(tl.float32)
            decay = tl.exp2(step[None, :] * rates)
            if BACK:
                if FUSED:
                    gate = gates[j].to(tl.float32)
                    x *= gate * tl.sigmoid(gate)
                h = decay * (h + x[None, :] * map_[:, None])
            else:
                h = decay * h + (step * x)[None, :] * map_[:, None]
            total += step
    place = (row * M + m) * E
    tl.store(ends + (place + e[None, :]) * N + n[:, None], h, mask=held)
    tl.store(sums + place + e, total, mask=real)


@triton.jit
def walk_kernel(
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
def outputs_kernel(
    u, dt, a, b, c, skip, z, befores, y, T, E, M, u_row, u_time, b_row, b_time, c_row, c_time, z_row, z_time,
    N: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, CHUNK: tl.constexpr, FEW: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    block, m, row = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    e = block * BE + tl.arange(0, BE)
    n = tl.arange(0, BN)
    real = e < E
    held = (n < N)[:, None] & real[None, :]
    rates = tl.load(a + e[None, :] * N + n[:, None], mask=held, other=0.0)
    h = tl.load(befores + ((row * M + m) * E + e[None, :]) * N + n[:, None], mask=held, other=0.0)
    passes = tl.load(skip + e, mask=real, other=0.0).to(tl.float32) if FUSED else tl.zeros((BE,), dtype=tl.float32)
    first = m * CHUNK
    size = tl.minimum(CHUNK, T - first).to(tl.int32)
    dt += (row * T + first) * E + e
    y += (row * T + first) * E + e
    u += row * u_row + first * u_time + e
    b += row * b_row + first * b_time + n
    c += row * c_row + first * c_time + n
    z += row * z_row + first * z_time + e
    for begin in range(0, size, FEW):
        steps = _rows(dt, E, begin, real, size, FEW)
        inputs = _rows(u, u_time, begin, real, size, FEW)
        writes = _rows(b, b_time, begin, n < N, size, FEW)
        reads = _rows(c, c_time, begin, n < N, size, FEW)
        gates = _rows(z, z_time, begin, real, size, FEW) if FUSED else inputs
        for j in tl.static_range(FEW):
            step, x = steps[j].to(tl.float32), inputs[j].to(tl.float32)
            h = tl.exp2(step[None, :] * rates) * h + (step * x)[None, :] * writes[j].to(tl.float32)[:, None]
            out = tl.sum(h * reads[j].to(tl.float32)[:, None], 0)
            if FUSED:
                gate = gates[j].to(tl.float32)
                out = (out + passes * x) * (gate * tl.sigmoid(gate))
            tl.store(y + (begin + j) * E, out.to(y.dtype.element_ty), mask=real & (begin + j < size))


@triton.jit
def gradients_kernel(
    u, raw, dt, a, b, c, skip, z, befores, afters, d_y, scratch, d_u, d_dt, d_a, d_b, d_c, d_skip, d_z, T, E, M,
    u_row, u_time, b_row, b_time, c_row, c_time, z_row, z_time,
    N: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, CHUNK: tl.constexpr, FEW: tl.constexpr, FUSED: tl.constexpr,
):  # fmt: skip
    """All gradients of a chunk. It goes forward once and leaves the state before every FEW tokens in scratch; then back
    from the last few, whose states it makes again and holds in registers."""
    block, m, row = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
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
    size = tl.minimum(CHUNK, T - first).to(tl.int32)
    fews = (size + FEW - 1) // FEW
    at = (row * T + first) * E + e
    shared = ((row * tl.num_programs(0) + block) * T + first) * N + n
    u += row * u_row + first * u_time + e
    b += row * b_row + first * b_time + n
    c += row * c_row + first * c_time + n
    z += row * z_row + first * z_time + e
    for i in range(fews):
        steps = _rows(dt + at, E, i * FEW, real, size, FEW)
        inputs = _rows(u, u_time, i * FEW, real, size, FEW)
        writes = _rows(b, b_time, i * FEW, n < N, size, FEW)
        tl.store(own + i * E * N, h, mask=held)
        for j in tl.static_range(FEW):
            driven = steps[j].to(tl.float32) * inputs[j].to(tl.float32)
            decay = tl.exp2(steps[j].to(tl.float32)[None, :] * rates)
            h = decay * h + driven[None, :] * writes[j].to(tl.float32)[:, None]
    # What one thread wrote to scratch another may read.
    tl.debug_barrier()
    passes = tl.load(skip + e, mask=real, other=0.0).to(tl.float32) if FUSED else tl.zeros((BE,), dtype=tl.float32)
    grad_a = tl.zeros((BN, BE), dtype=tl.float32)
    grad_skip = tl.zeros((BE,), dtype=tl.float32)
    for back in range(fews):
        begin = (fews - 1 - back) * FEW
        h = tl.load(own + (fews - 1 - back) * E * N, mask=held, other=0.0)
        steps = _rows(dt + at, E, begin, real, size, FEW)
        inputs = _rows(u, u_time, begin, real, size, FEW)
        writes = _rows(b, b_time, begin, n < N, size, FEW)
        reads = _rows(c, c_time, begin, n < N, size, FEW)
        uppers = _rows(d_y + at, E, begin, real, size, FEW)
        gates = _rows(z, z_time, begin, real, size, FEW) if FUSED else uppers
        raws = _rows(raw + at, E, begin, real, size, FEW) if FUSED else uppers
        states = (h,)
        for j in tl.static_range(FEW):
            driven = steps[j].to(tl.float32) * inputs[j].to(tl.float32)
            decay = tl.exp2(steps[j].to(tl.float32)[None, :] * rates)
            h = decay * h + driven[None, :] * writes[j].to(tl.float32)[:, None]
            states = states + (h,)
        for j in tl.static_range(FEW - 1, -1, -1):
            now = real & (begin + j < size)
            to = at + (begin + j) * E
            step, x = steps[j].to(tl.float32), inputs[j].to(tl.float32)
            write, read = writes[j].to(tl.float32), reads[j].to(tl.float32)
            upper = uppers[j].to(tl.float32)
            if FUSED:
                gate = gates[j].to(tl.float32)
                opened = tl.sigmoid(gate)
                out = tl.sum(states[j + 1] * read[:, None], 0) + passes * x
                grad_gate = upper * out * opened * (1 + gate * (1 - opened))
                tl.store(d_z + to, grad_gate.to(d_z.dtype.element_ty), mask=now)
                upper *= gate * opened
                grad_skip += upper * x
            g += upper[None, :] * read[:, None]
            map_at, map_real = shared + (begin + j) * N, (n < N) & (begin + j < size)
            tl.store(d_c + map_at, tl.sum(upper[None, :] * states[j + 1], 1), mask=map_real)
            tl.store(d_b + map_at, tl.sum((step * x)[None, :] * g, 1), mask=map_real)
            product = tl.sum(g * write[:, None], 0)
            g *= tl.exp2(step[None, :] * rates)
            exponent = g * states[j]
            grad_step = product * x + tl.sum(exponent * rates, 0) * LN2
            if FUSED:
                grad_step *= tl.sigmoid(raws[j].to(tl.float32))
            tl.store(d_dt + to, grad_step.to(d_dt.dtype.element_ty), mask=now)
            tl.store(d_u + to, (product * step + passes * upper).to(d_u.dtype.element_ty), mask=now)
            grad_a += exponent * step[None, :]
    tl.store(d_a + place, grad_a, mask=held)
    tl.store(d_skip + (row * M + m) * E + e, grad_skip, mask=real)
