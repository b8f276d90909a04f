"""The selective scan as two Triton kernels, for CUDA devices; imported on first use only.

One program walks the tokens of one sequence for a block of channels with the state in registers, as the scan of Gu and
Dao 2023 does. The backward pass walks the chunks from the last to the first, makes the states of a chunk again from its
border and keeps them in scratch memory while it goes back through the chunk. Glossary: kernels/selective_scan.py.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 32
CHUNK = 32


@triton.jit
def _forward(u, dt, a, b, c, h0, y, borders, last, T, E, N: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    row, block = tl.program_id(0), tl.program_id(1)
    e = block * BLOCK + tl.arange(0, BLOCK)
    n = tl.arange(0, N)
    real = e < E
    wide = real[:, None] & (n < N)[None, :]
    place = e[:, None] * N + n[None, :]
    rates = tl.load(a + place, mask=wide, other=0.0)
    h = tl.load(h0 + row * E * N + place, mask=wide, other=0.0)
    chunks = (T + CHUNK - 1) // CHUNK
    for t in range(T):
        if t % CHUNK == 0:
            tl.store(borders + (row * chunks + t // CHUNK) * E * N + place, h, mask=wide)
        at = (row * T + t) * E + e
        step = tl.load(dt + at, mask=real, other=0.0)
        x = tl.load(u + at, mask=real, other=0.0)
        write = tl.load(b + (row * T + t) * N + n)
        read = tl.load(c + (row * T + t) * N + n)
        h = tl.exp(step[:, None] * rates) * h + (step * x)[:, None] * write[None, :]
        tl.store(y + at, tl.sum(h * read[None, :], 1), mask=real)
    tl.store(last + row * E * N + place, h, mask=wide)


@triton.jit
def _backward(
    u, dt, a, b, c, borders, d_y, d_last, scratch, d_u, d_dt, d_a, d_b, d_c, d_h0, T, E, blocks,
    N: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    row, block = tl.program_id(0), tl.program_id(1)
    e = block * BLOCK + tl.arange(0, BLOCK)
    n = tl.arange(0, N)
    real = e < E
    wide = real[:, None] & (n < N)[None, :]
    place = e[:, None] * N + n[None, :]
    inner = tl.arange(0, BLOCK)[:, None] * N + n[None, :]
    own = scratch + (row * blocks + block) * CHUNK * BLOCK * N
    rates = tl.load(a + place, mask=wide, other=0.0)
    g = tl.load(d_last + row * E * N + place, mask=wide, other=0.0)
    grad_a = tl.zeros((BLOCK, N), dtype=tl.float32)
    chunks = (T + CHUNK - 1) // CHUNK
    for back in range(chunks):
        i = chunks - 1 - back
        start = i * CHUNK
        stop = tl.minimum(start + CHUNK, T)
        h = tl.load(borders + (row * chunks + i) * E * N + place, mask=wide, other=0.0)
        for t in range(start, stop):
            tl.store(own + (t - start) * BLOCK * N + inner, h)
            at = (row * T + t) * E + e
            step = tl.load(dt + at, mask=real, other=0.0)
            x = tl.load(u + at, mask=real, other=0.0)
            write = tl.load(b + (row * T + t) * N + n)
            h = tl.exp(step[:, None] * rates) * h + (step * x)[:, None] * write[None, :]
        # What one thread wrote to scratch another may read.
        tl.debug_barrier()
        for s in range(stop - start):
            t = stop - 1 - s
            at = (row * T + t) * E + e
            step = tl.load(dt + at, mask=real, other=0.0)
            x = tl.load(u + at, mask=real, other=0.0)
            write = tl.load(b + (row * T + t) * N + n)
            read = tl.load(c + (row * T + t) * N + n)
            grad_y = tl.load(d_y + at, mask=real, other=0.0)
            before = tl.load(own + (t - start) * BLOCK * N + inner)
            decay = tl.exp(step[:, None] * rates)
            after = decay * before + (step * x)[:, None] * write[None, :]
            g += grad_y[:, None] * read[None, :]
            shared = ((row * blocks + block) * T + t) * N + n
            tl.store(d_c + shared, tl.sum(grad_y[:, None] * after, 0))
            tl.store(d_b + shared, tl.sum((step * x)[:, None] * g, 0))
            grad_product = tl.sum(g * write[None, :], 1)
            g_exponent = g * decay * before
            tl.store(d_u + at, grad_product * step, mask=real)
            tl.store(d_dt + at, grad_product * x + tl.sum(g_exponent * rates, 1), mask=real)
            grad_a += g_exponent * step[:, None]
            g = g * decay
        tl.debug_barrier()
    tl.store(d_a + row * E * N + place, grad_a, mask=wide)
    tl.store(d_h0 + row * E * N + place, g, mask=wide)


class TritonScan(torch.autograd.Function):
    """Same arguments and results as the scan on a CPU; float32, and N a power of two."""

    @staticmethod
    def forward(ctx, u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        u, dt, a, b, c, h = (t.contiguous() for t in (u, dt, a, b, c, h))
        batch, length, width = u.shape
        y, last = torch.empty_like(u), torch.empty_like(h)
        borders = u.new_empty(batch, -(-length // CHUNK), width, a.shape[1])
        grid = (batch, triton.cdiv(width, BLOCK))
        _forward[grid](u, dt, a, b, c, h, y, borders, last, length, width, a.shape[1], BLOCK, CHUNK)
        ctx.save_for_backward(u, dt, a, b, c, borders)
        return y, last

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, ...]:
        d_y, d_last = (g.contiguous() for g in gradients)
        u, dt, a, b, c, borders = ctx.saved_tensors
        batch, length, width = u.shape
        states, blocks = a.shape[1], triton.cdiv(width, BLOCK)
        d_u, d_dt = torch.empty_like(u), torch.empty_like(dt)
        d_a, d_h = u.new_empty(batch, width, states), u.new_empty(batch, width, states)
        # Each block of channels writes its own share of B's and C's gradients: no atomics, the same sum every time.
        d_b, d_c = u.new_empty(batch, blocks, length, states), u.new_empty(batch, blocks, length, states)
        scratch = u.new_empty(batch, blocks, CHUNK, BLOCK, states)
        _backward[(batch, blocks)](
            u, dt, a, b, c, borders, d_y, d_last, scratch, d_u, d_dt, d_a, d_b, d_c, d_h, length, width, blocks,
            states, BLOCK, CHUNK,
        )  # fmt: skip
        return d_u, d_dt, d_a.sum(0), d_b.sum(1), d_c.sum(1), d_h
