"""SSD as Triton kernels, forward and backward, for CUDA devices; imported on first use only.

Tokens are cut into chunks of Q. The state walks over the chunks in float32 registers and leaves a copy at every border;
then all chunks work at once, each with matrix products alone. The backward pass makes the borders again, walks once
more from the last chunk to the first with the gradient of the state, and keeps nothing but the inputs.

Names beyond those of mixers/ssd.py: q and s are tokens of one chunk, L_qs the decay from s to q.
borders   (B, M, H, P, N): the state before each chunk, or the gradient of the state after it
running   sum of the decays from the chunk's beginning to each token, the token's own counted
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

# exp of less is 0 in float32, and its gradient too; the bound keeps the sums of a chunk small.
LEAST = tl.constexpr(-200.0)
LOG2E = tl.constexpr(math.log2(math.e))


@triton.jit
def _running(decay, at, real):
    """Running sums in float64: of their differences nothing is lost, be the forgetting before ever so strong."""
    own = tl.load(decay + at, mask=real, other=0.0).to(tl.float32)
    own = tl.where(own < LEAST, LEAST, own).to(tl.float64)
    return tl.cumsum(own, 0), tl.sum(own, 0)


@triton.jit
def _decays(running, Q: tl.constexpr, TURNED: tl.constexpr):
    """L (Q, Q), rows q and columns s, or turned. Each sum is two float32 numbers, whose differences are near exact;
    powers are of two, for which the device has an instruction."""
    running = running * LOG2E
    high = running.to(tl.float32)
    low = (running - high.to(tl.float64)).to(tl.float32)
    sums = (high[:, None] - high[None, :]) + (low[:, None] - low[None, :])
    place = tl.arange(0, Q)
    after = place[:, None] >= place[None, :]
    if TURNED:
        sums, after = -sums, place[:, None] <= place[None, :]
    return tl.exp2(tl.where(after, sums, float("-inf")))


@triton.jit
def walk_kernel(
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
def outputs_kernel(
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
def input_gradients_kernel(
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
def map_gradients_kernel(
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
