"""SSD as Triton kernels, forward and backward, for CUDA devices; imported on first use only.

Tokens are cut into chunks of Q. The state walks over the chunks in float32 registers and leaves a copy at every border;
then all chunks work at once, each with matrix products alone. The backward pass makes the borders again, walks once
more from the last chunk to the first with the gradient of the state, and keeps nothing but the inputs.

Names beyond those of mixers/ssd.py: q and s are tokens of one chunk, L_qs the decay from s to q.
borders   (B, M, H, P, N): the state before each chunk, or the gradient of the state after it
running   sum of the decays from the chunk's beginning to each token, the token's own counted
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.ssd import CHUNK

# exp of less is 0 in float32, and its gradient too; the bound keeps the sums of a chunk small.
LEAST = tl.constexpr(-200.0)


@dataclass(frozen=True)
class Launch:
    """chunk: Q. walk: rows and columns of the state a program holds. heads: whose shares in B's and C's gradients one
    program adds up. warps and stages: of the walk, the outputs, the inputs' gradients, the gradients of B and C."""

    chunk: int = 64
    walk: tuple[int, int] = (32, 64)
    heads: int = 8
    warps: tuple[int, int, int, int] = (4, 4, 4, 4)
    stages: tuple[int, int, int, int] = (3, 1, 1, 2)


LAUNCH = {
    torch.bfloat16: Launch(CHUNK[torch.bfloat16]),
    torch.float16: Launch(CHUNK[torch.float16]),
    torch.float32: Launch(CHUNK[torch.float32], (32, 32), 8, (4, 8, 8, 8), (2, 1, 1, 1)),
}


@triton.jit
def _running(decay, at, real):
    """Running sums in float64: of their differences nothing is lost, be the forgetting before ever so strong."""
    own = tl.load(decay + at, mask=real, other=0.0).to(tl.float32)
    own = tl.where(own < LEAST, LEAST, own).to(tl.float64)
    return tl.cumsum(own, 0), tl.sum(own, 0)


@triton.jit
def _decays(running, Q: tl.constexpr, TURNED: tl.constexpr):
    """L (Q, Q), rows q and columns s, or turned. Each sum is two float32 numbers, whose differences are near exact."""
    high = running.to(tl.float32)
    low = (running - high.to(tl.float64)).to(tl.float32)
    sums = (high[:, None] - high[None, :]) + (low[:, None] - low[None, :])
    place = tl.arange(0, Q)
    after = place[:, None] >= place[None, :]
    if TURNED:
        sums, after = -sums, place[:, None] <= place[None, :]
    return tl.exp(tl.where(after, sums, float("-inf")))


@triton.jit
def _walk(
    x, dt, decay, b, first, borders, last, T, H, M, R, x_row, x_time, x_head, b_row, b_time, b_group,
    P: tl.constexpr, N: tl.constexpr, Q: tl.constexpr, BP: tl.constexpr, BN: tl.constexpr, BACK: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """h after a chunk = exp(its decay) h + sum_s (decay from s to its end) dt_s x_s b_s^T, for a block of h.

    BACK: the same from the last chunk, with d_y for x, C for b and the decay from the chunk's beginning to s.
    """
    head, row = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    blocks: tl.constexpr = (N + BN - 1) // BN
    p = (tl.program_id(2) // blocks) * BP + tl.arange(0, BP)
    n = (tl.program_id(2) % blocks) * BN + tl.arange(0, BN)
    q = tl.arange(0, Q)
    held = (p < P)[:, None] & (n < N)[None, :]
    place = p[:, None] * N + n[None, :]
    state = tl.load(first + (row * H + head) * P * N + place, mask=held, other=0.0)
    x += row * x_row + head * x_head + p[:, None]
    b += row * b_row + (head // R) * b_group + n[None, :]
    for i in range(M):
        m = M - 1 - i if BACK else i
        tl.store(borders + ((row * M + m) * H + head) * P * N + place, state.to(borders.dtype.element_ty), mask=held)
        t = m * Q + q
        real = t < T
        at = (row * T + t) * H + head
        running, end = _running(decay, at, real)
        if BACK:
            weight = tl.exp(running.to(tl.float32))
        else:
            weight = tl.exp((end - running).to(tl.float32)) * tl.load(dt + at, mask=real, other=0.0).to(tl.float32)
        values = tl.load(x + t[None, :] * x_time, mask=(p < P)[:, None] & real[None, :], other=0.0)
        maps = tl.load(b + t[:, None] * b_time, mask=real[:, None] & (n < N)[None, :], other=0.0)
        weighed = (values.to(tl.float32) * weight[None, :]).to(maps.dtype)
        state = tl.dot(weighed, maps, state * tl.exp(end.to(tl.float32)), input_precision=PRECISION)
    tl.store(last + (row * H + head) * P * N + place, state, mask=held)


@triton.jit
def _outputs(
    x, dt, decay, b, c, skip, borders, y, T, H, M, R, x_row, x_time, x_head, b_row, b_time, b_group,
    c_row, c_time, c_group, P: tl.constexpr, N: tl.constexpr, Q: tl.constexpr, BP: tl.constexpr, BN: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """y_q = sum_s L_qs (c_q . b_s) dt_s x_s + (decay from the beginning to q) h c_q + D x_q, for one chunk and head."""
    head, m, row = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2).to(tl.int64)
    p, n, q = tl.arange(0, BP), tl.arange(0, BN), tl.arange(0, Q)
    t = m * Q + q
    real = t < T
    at = (row * T + t) * H + head
    x += row * x_row + head * x_head
    b += row * b_row + (head // R) * b_group
    c += row * c_row + (head // R) * c_group
    reads = tl.load(c + t[:, None] * c_time + n[None, :], mask=real[:, None] & (n < N)[None, :], other=0.0)
    writes = tl.load(b + t[None, :] * b_time + n[:, None], mask=(n < N)[:, None] & real[None, :], other=0.0)
    values = tl.load(x + t[:, None] * x_time + p[None, :], mask=real[:, None] & (p < P)[None, :], other=0.0)
    place = p[None, :] * N + n[:, None]
    held = (n < N)[:, None] & (p < P)[None, :]
    before = tl.load(borders + ((row * M + m) * H + head) * P * N + place, mask=held, other=0.0)
    steps = tl.load(dt + at, mask=real, other=0.0).to(tl.float32)
    running, _ = _running(decay, at, real)
    out = tl.dot(reads, before, input_precision=PRECISION) * tl.exp(running.to(tl.float32))[:, None]
    scores = tl.dot(reads, writes, input_precision=PRECISION) * _decays(running, Q, False) * steps[None, :]
    out = tl.dot(scores.to(values.dtype), values, out, input_precision=PRECISION)
    out += values.to(tl.float32) * tl.load(skip + head).to(tl.float32)
    to = y + at[:, None] * P + p[None, :]
    tl.store(to, out.to(y.dtype.element_ty), mask=real[:, None] & (p < P)[None, :])


@triton.jit
def _input_gradients(
    x, dt, decay, b, c, skip, befores, afters, d_y, d_x, d_dt, d_decay, d_skip, T, H, M, R, x_row, x_time, x_head,
    b_row, b_time, b_group, c_row, c_time, c_group, P: tl.constexpr, N: tl.constexpr, Q: tl.constexpr,
    BP: tl.constexpr, BN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of x, dt, the decays and D for one chunk and head; square matrices have rows s and columns q.

    A decay at k acts on every pair s < k <= q, on what leaves the state before for q >= k, on what s < k leaves to the
    state after, and on the state that goes through.
    """
    head, m, row = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2).to(tl.int64)
    p, n, q = tl.arange(0, BP), tl.arange(0, BN), tl.arange(0, Q)
    t = m * Q + q
    real = t < T
    at = (row * T + t) * H + head
    narrow, wide = real[:, None] & (p < P)[None, :], real[:, None] & (n < N)[None, :]
    maps = b + row * b_row + (head // R) * b_group + t[:, None] * b_time + n[None, :]
    writes = tl.load(maps, mask=wide, other=0.0)
    maps = c + row * c_row + (head // R) * c_group + t[:, None] * c_time + n[None, :]
    reads = tl.load(maps, mask=wide, other=0.0)
    values = tl.load(x + row * x_row + head * x_head + t[:, None] * x_time + p[None, :], mask=narrow, other=0.0)
    upper = tl.load(d_y + at[:, None] * P + p[None, :], mask=narrow, other=0.0)
    border = ((row * M + m) * H + head) * P * N + p[None, :] * N + n[:, None]
    held = (n < N)[:, None] & (p < P)[None, :]
    before = tl.load(befores + border, mask=held, other=0.0)
    after = tl.load(afters + border, mask=held, other=0.0)
    steps = tl.load(dt + at, mask=real, other=0.0).to(tl.float32)
    running, end = _running(decay, at, real)

    through = tl.dot(writes, after, input_precision=PRECISION) * tl.exp((end - running).to(tl.float32))[:, None]
    leaves = tl.sum(through * values.to(tl.float32), 1) * steps
    out = tl.dot(reads, before, input_precision=PRECISION) * tl.exp(running.to(tl.float32))[:, None]
    comes = tl.sum(out * upper.to(tl.float32), 1)
    whole = tl.sum(tl.sum(before.to(tl.float32) * after.to(tl.float32), 1), 0) * tl.exp(end.to(tl.float32))

    scores = tl.dot(writes, tl.trans(reads), input_precision=PRECISION) * _decays(running, Q, True)
    product = tl.dot(scores.to(upper.dtype), upper, through, input_precision=PRECISION)
    pairs = tl.dot(values, tl.trans(upper), input_precision=PRECISION) * scores * steps[:, None]
    # A token's own pair feels no decay; what s and q >= k share is taken away again.
    pairs = tl.where(q[:, None] < q[None, :], pairs, 0.0)
    crossing = tl.cumsum(tl.sum(pairs, 0) - tl.sum(pairs, 1) + comes, 0, reverse=True)
    tl.store(d_decay + at, crossing + (tl.cumsum(leaves, 0) - leaves) + whole, mask=real)
    tl.store(d_dt + at, tl.sum(product * values.to(tl.float32), 1), mask=real)
    share = tl.sum(tl.sum(values.to(tl.float32) * upper.to(tl.float32), 1), 0)
    tl.store(d_skip + (row * M + m) * H + head, share)
    product = product * steps[:, None] + upper.to(tl.float32) * tl.load(skip + head).to(tl.float32)
    tl.store(d_x + at[:, None] * P + p[None, :], product.to(d_x.dtype.element_ty), mask=narrow)


@triton.jit
def _map_gradients(
    left, right, dt, decay, other, borders, d_maps, B, T, H, M, G, R, HEADS, l_row, l_time, l_head,
    r_row, r_time, r_head, o_row, o_time, o_group, P: tl.constexpr, N: tl.constexpr, Q: tl.constexpr,
    BP: tl.constexpr, BN: tl.constexpr, WRITES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The share of some heads in the gradient of C in one chunk, or, WRITES, of B.

    d_c_q = sum_heads sum_s L_qs (d_y_q . dt_s x_s) b_s + (decay to q) h^T d_y_q;   left d_y, right x, other b
    d_b_s = sum_heads sum_q L_qs (dt_s x_s . d_y_q) c_q + (decay from s) g^T dt_s x_s;   left x, right d_y, other c
    """
    part, m, row = tl.program_id(0), tl.program_id(1) // G, tl.program_id(2).to(tl.int64)
    group = tl.program_id(1) % G
    p, n, q = tl.arange(0, BP), tl.arange(0, BN), tl.arange(0, Q)
    t = m * Q + q
    real = t < T
    held = (p < P)[:, None] & (n < N)[None, :]
    left += row * l_row + t[:, None] * l_time + p[None, :]
    right += row * r_row + t[None, :] * r_time + p[:, None]
    square = tl.zeros((Q, Q), dtype=tl.float32)
    total = tl.zeros((Q, BN), dtype=tl.float32)
    for head in range(group * R + part * HEADS, group * R + tl.minimum(R, part * HEADS + HEADS)):
        at = (row * T + t) * H + head
        rows = tl.load(left + head * l_head, mask=real[:, None] & (p < P)[None, :], other=0.0)
        columns = tl.load(right + head * r_head, mask=(p < P)[:, None] & real[None, :], other=0.0)
        border = ((row * M + m) * H + head) * P * N + p[:, None] * N + n[None, :]
        state = tl.load(borders + border, mask=held, other=0.0)
        steps = tl.load(dt + at, mask=real, other=0.0).to(tl.float32)
        running, end = _running(decay, at, real)
        decays = _decays(running, Q, WRITES)
        if WRITES:
            decays *= steps[:, None]
            weight = tl.exp((end - running).to(tl.float32)) * steps
        else:
            decays *= steps[None, :]
            weight = tl.exp(running.to(tl.float32))
        square += tl.dot(rows, columns, input_precision=PRECISION) * decays
        weighed = (rows.to(tl.float32) * weight[:, None]).to(rows.dtype)
        total = tl.dot(weighed, state, total, input_precision=PRECISION)
    maps = other + row * o_row + group * o_group + t[:, None] * o_time + n[None, :]
    maps = tl.load(maps, mask=real[:, None] & (n < N)[None, :], other=0.0)
    total = tl.dot(square.to(maps.dtype), maps, total, input_precision=PRECISION)
    to = d_maps + (((part * B + row) * T + t[:, None]) * G + group) * N + n[None, :]
    tl.store(to, total, mask=real[:, None] & (n < N)[None, :])


@dataclass(frozen=True)
class _Sizes:
    """What every launch asks of the shapes."""

    B: int
    T: int
    H: int
    P: int
    G: int
    N: int
    M: int

    @property
    def share(self) -> int:
        return self.H // self.G

    @property
    def blocks(self) -> tuple[int, int]:
        """P and N as the matrix products take them: powers of two, 16 at least."""
        return max(16, triton.next_power_of_2(self.P)), max(16, triton.next_power_of_2(self.N))


def _sizes(x: Tensor, b: Tensor, chunk: int) -> _Sizes:
    batch, length, heads, width = x.shape
    return _Sizes(batch, length, heads, width, b.shape[2], b.shape[3], -(-length // chunk))


def _precision() -> str:
    """Products of float32 as torch's own are set."""
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def _dense(t: Tensor) -> Tensor:
    """Any layout whose last axis lies side by side."""
    return t if t.stride(-1) == 1 else t.contiguous()


def _borders(
    x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, first: Tensor, launch: Launch, back: bool
) -> tuple[Tensor, Tensor]:
    """The states at the borders, in the number type of x, and the last one in float32."""
    s = _sizes(x, b, launch.chunk)
    block_p, block_n = (min(block, most) for block, most in zip(s.blocks, launch.walk, strict=True))
    borders, last = x.new_empty(s.B, s.M, s.H, s.P, s.N), torch.empty_like(first)
    grid = (s.H, s.B, triton.cdiv(s.P, block_p) * triton.cdiv(s.N, block_n))
    _walk[grid](
        x, dt, decay, b, first, borders, last, s.T, s.H, s.M, s.share, *x.stride()[:3], *b.stride()[:3],
        s.P, s.N, launch.chunk, block_p, block_n, back, _precision(),
        num_warps=launch.warps[0], num_stages=launch.stages[0],
    )  # fmt: skip
    return borders, last


def ssd_forward(
    x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor, launch: Launch
) -> tuple[Tensor, Tensor]:
    """y (B, T, H, P) in the number type of x, and the last state in float32."""
    x, b, c = _dense(x), _dense(b), _dense(c)
    dt, decay, h = dt.contiguous(), decay.contiguous(), h.float().contiguous()
    s = _sizes(x, b, launch.chunk)
    borders, last = _borders(x, dt, decay, b, h, launch, False)
    y = x.new_empty(x.shape)
    _outputs[(s.H, s.M, s.B)](
        x, dt, decay, b, c, skip, borders, y, s.T, s.H, s.M, s.share, *x.stride()[:3], *b.stride()[:3],
        *c.stride()[:3], s.P, s.N, launch.chunk, *s.blocks, _precision(),
        num_warps=launch.warps[1], num_stages=launch.stages[1],
    )  # fmt: skip
    return y, last


def ssd_backward(
    d_y: Tensor, d_last: Tensor, x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor,
    launch: Launch,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of all inputs of the forward pass, in their order; float32 but for those of x, b and c."""
    x, b, c = _dense(x), _dense(b), _dense(c)
    dt, decay, h, d_y, d_last = (t.contiguous() for t in (dt, decay, h.float(), d_y.to(x.dtype), d_last.float()))
    s = _sizes(x, b, launch.chunk)
    befores, _ = _borders(x, dt, decay, b, h, launch, False)
    afters, d_h = _borders(d_y, dt, decay, c, d_last, launch, True)
    d_x, wide = x.new_empty(x.shape), torch.float32
    d_dt, d_decay = torch.empty_like(dt, dtype=wide), torch.empty_like(decay, dtype=wide)
    d_skip = torch.empty(s.B, s.M, s.H, dtype=wide, device=x.device)
    _input_gradients[(s.H, s.M, s.B)](
        x, dt, decay, b, c, skip, befores, afters, d_y, d_x, d_dt, d_decay, d_skip, s.T, s.H, s.M, s.share,
        *x.stride()[:3], *b.stride()[:3], *c.stride()[:3], s.P, s.N, launch.chunk, *s.blocks, _precision(),
        num_warps=launch.warps[2], num_stages=launch.stages[2],
    )  # fmt: skip
    d_b = _maps_gradient(x, d_y, dt, decay, c, afters, launch, s, True).to(b.dtype)
    d_c = _maps_gradient(d_y, x, dt, decay, b, befores, launch, s, False).to(c.dtype)
    return d_x, d_dt, d_decay, d_b, d_c, d_skip.sum((0, 1)), d_h


def _maps_gradient(
    left: Tensor, right: Tensor, dt: Tensor, decay: Tensor, other: Tensor, borders: Tensor, launch: Launch, s: _Sizes,
    writes: bool,
) -> Tensor:  # fmt: skip
    """(B, T, G, N) in float32. Shares of the heads are added up afterwards: no atomics, the same sum every time."""
    parts = triton.cdiv(s.share, launch.heads)
    shares = torch.empty(parts, s.B, s.T, s.G, s.N, dtype=torch.float32, device=left.device)
    _map_gradients[(parts, s.M * s.G, s.B)](
        left, right, dt, decay, other, borders, shares, s.B, s.T, s.H, s.M, s.G, s.share, launch.heads,
        *left.stride()[:3], *right.stride()[:3], *other.stride()[:3], s.P, s.N, launch.chunk, *s.blocks, writes,
        _precision(), num_warps=launch.warps[3], num_stages=launch.stages[3],
    )  # fmt: skip
    return shares[0] if parts == 1 else shares.sum(0)
