"""One query a row over a cache, split over the keys, as two Triton kernels; imported on first use only.

A program takes one row, one group of heads and one part of the keys that the row has, with a running softmax (Milakov
and Gimelshein 2018; the split is that of Flash-Decoding, Dao et al. 2023):

    m, l, a = max of scores, sum of exp(score - m), sum of exp(score - m) v       of each part
    y = sum over parts of exp(m - M) a / sum over parts of exp(m - M) l           M the largest m

How long the parts are depends on the row's own count, which the device reads, so that a single row with a long cache
keeps the whole card busy and a short one ends early. The first part also takes the new key and value, and writes them.
Queries and the new key come as the projection gives them: where they are normed and turned by their position
(layers/norm.py, layers/position.py), it is done here.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels.choice import launches_early, processors

BLOCK = 64  # keys at a time
LEAST = 16  # the smallest side of a product on tensor cores
PROGRAMS = 2  # for each processor of the card, at least
MOST_PARTS = 32


@triton.jit
def _placed(
    x, weight, position, k, real, epsilon, log_base, K: tl.constexpr, NORMED: tl.constexpr, TURNED: tl.constexpr
):  # fmt: skip
    """Vectors that begin at x (R, 1), normed and turned by their position; (R, K)."""
    found = tl.load(x + k[None, :], mask=real, other=0.0)
    dtype = found.dtype
    if NORMED:
        size = tl.rsqrt(tl.sum(found.to(tl.float32) * found.to(tl.float32), 1) / K + epsilon)
        w = tl.load(weight + k, mask=k < K, other=0.0).to(tl.float32)
        found = (found.to(tl.float32) * size[:, None] * w[None, :]).to(dtype)
    if TURNED:
        # The other number of each pair.
        other = k ^ 1
        beside = tl.load(x + other[None, :], mask=real, other=0.0)
        if NORMED:
            w = tl.load(weight + other, mask=k < K, other=0.0).to(tl.float32)
            beside = (beside.to(tl.float32) * size[:, None] * w[None, :]).to(dtype)
        angle = position.to(tl.float32) * tl.exp2(-(k - k % 2).to(tl.float32) / K * log_base)
        sine = tl.where(k % 2 == 0, -tl.sin(angle), tl.sin(angle))
        found = (found.to(tl.float32) * tl.cos(angle)[None, :] + beside.to(tl.float32) * sine[None, :]).to(dtype)
    return found


@triton.jit
def _attend(
    q, new_keys, new_values, keys, values, count, y, part_max, part_sum, part_y, q_weight, k_weight,
    q_row, q_head, k_row, k_head, v_row, v_head, slots, groups, scale, window, epsilon, log_base,
    R: tl.constexpr, K: tl.constexpr, R_PAD: tl.constexpr, K_PAD: tl.constexpr, BLOCK: tl.constexpr,
    PARTS: tl.constexpr, PRECISION: tl.constexpr, NORMED: tl.constexpr, TURNED: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    pair, part = tl.program_id(0), tl.program_id(1)
    row, group = (pair // groups).to(tl.int64), pair % groups
    position = tl.load(count + row)
    end = tl.minimum(position, slots)
    begin = tl.where(window > 0, tl.maximum(position + 1 - window, 0), 0)
    length = tl.maximum(end - begin, 0)
    share = tl.cdiv(tl.cdiv(length, PARTS), BLOCK) * BLOCK
    low = begin + part * share
    high = tl.minimum(low + share, end)
    r, k, s = tl.arange(0, R_PAD), tl.arange(0, K_PAD), tl.arange(0, BLOCK)
    real_r, real_k = r < R, k < K
    real = real_r[:, None] & real_k[None, :]
    begin_q = q + row * q_row + (group * R + r)[:, None] * q_head
    query = _placed(begin_q, q_weight, position, k, real, epsilon, log_base, K, NORMED, TURNED)
    m = tl.full((R_PAD,), float("-inf"), tl.float32)
    total = tl.zeros((R_PAD,), tl.float32)
    a = tl.zeros((R_PAD, K_PAD), tl.float32)
    cache = row * slots * groups * K + group * K
    for start in range(low, high, BLOCK):
        slot = start + s
        inside = (slot < high)[:, None] & real_k[None, :]
        place = cache + slot[:, None] * groups * K + k[None, :]
        key = tl.load(keys + place, mask=inside, other=0.0)
        value = tl.load(values + place, mask=inside, other=0.0)
        scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * scale
        scores = tl.where((slot < high)[None, :], scores, float("-inf"))
        larger = tl.maximum(m, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        shrink = tl.exp(m - larger)
        total = total * shrink + tl.sum(weights, 1)
        a = a * shrink[:, None] + tl.dot(weights.to(value.dtype), value, input_precision=PRECISION)
        m = larger
    own = (part == 0) & (position < slots)
    begin_k = new_keys + row * k_row + group * k_head + tl.zeros((1, 1), tl.int64)
    key = _placed(begin_k, k_weight, position, k, real_k[None, :], epsilon, log_base, K, NORMED, TURNED)
    key = tl.sum(key.to(tl.float32), 0).to(keys.dtype.element_ty)
    value = tl.load(new_values + row * v_row + group * v_head + k, mask=real_k, other=0.0)
    slot = cache + position * groups * K + k
    tl.store(keys + slot, key, mask=real_k & own)
    tl.store(values + slot, value, mask=real_k & own)
    score = tl.sum(query.to(tl.float32) * key.to(tl.float32)[None, :], 1) * scale
    score = tl.where(own, score, float("-inf"))
    larger = tl.maximum(m, score)
    # A part without any key has no largest score.
    larger = tl.where(larger == float("-inf"), 0.0, larger)
    shrink, weight = tl.exp(m - larger), tl.exp(score - larger)
    total = total * shrink + weight
    a = a * shrink[:, None] + weight[:, None] * value.to(tl.float32)[None, :]
    head = (row * groups + group) * R + r
    if PARTS == 1:
        a = a / total[:, None]
        tl.store(y + head[:, None] * K + k[None, :], a.to(y.dtype.element_ty), mask=real)
    else:
        at = head * PARTS + part
        tl.store(part_max + at, larger, mask=real_r)
        tl.store(part_sum + at, total, mask=real_r)
        tl.store(part_y + at[:, None] * K + k[None, :], a, mask=real)


@triton.jit
def _join(
    y, part_max, part_sum, part_y, K: tl.constexpr, K_PAD: tl.constexpr, PARTS: tl.constexpr, EARLY: tl.constexpr
):  # fmt: skip
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    head = tl.program_id(0).to(tl.int64)
    part, k = tl.arange(0, PARTS), tl.arange(0, K_PAD)
    total = tl.load(part_sum + head * PARTS + part)
    m = tl.load(part_max + head * PARTS + part)
    m = tl.where(total > 0, m, float("-inf"))
    weight = tl.exp(m - tl.max(m, 0))
    a = tl.load(part_y + (head * PARTS + part)[:, None] * K + k[None, :], mask=(k < K)[None, :], other=0.0)
    found = tl.sum(weight[:, None] * a, 0) / tl.sum(weight * total, 0)
    tl.store(y + head * K + k, found.to(y.dtype.element_ty), mask=k < K)


def attend(
    q: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor, count: Tensor, scale: float, window: int,
    norms: tuple[Tensor, Tensor, float] | None, base: float | None,
) -> Tensor:  # fmt: skip
    """As `decode_attention.decode_attention`."""
    q, key, value = (t if t.stride(-1) == 1 else t.contiguous() for t in (q, key, value))
    (rows, heads, width), (slots, groups) = q.shape, keys.shape[1:3]
    parts = _parts(rows * groups, slots, q.device)
    y = q.new_empty(rows, heads, width)
    scratch = [y] * 3
    if parts > 1:
        shapes = ((rows, heads, parts), (rows, heads, parts), (rows, heads, parts, width))
        scratch = [q.new_empty(shape, dtype=torch.float32) for shape in shapes]
    q_weight, k_weight, epsilon = norms or (y, y, 0.0)
    early = launches_early(q.device)
    padded = max(LEAST, triton.next_power_of_2(width))
    _attend[(rows * groups, parts)](
        q, key, value, keys, values, count, y, *scratch, q_weight, k_weight,
        q.stride(0), q.stride(1), key.stride(0), key.stride(1), value.stride(0), value.stride(1),
        slots, groups, scale, window, epsilon, math.log2(base or 1.0),
        R=heads // groups, K=width, R_PAD=max(LEAST, triton.next_power_of_2(heads // groups)), K_PAD=padded,
        BLOCK=BLOCK, PARTS=parts, PRECISION="ieee", NORMED=norms is not None, TURNED=base is not None,
        EARLY=early, launch_pdl=early,
    )  # fmt: skip
    if parts > 1:
        _join[(rows * heads,)](y, *scratch, K=width, K_PAD=padded, PARTS=parts, EARLY=early, launch_pdl=early)
    return y


def _parts(programs: int, slots: int, device: torch.device) -> int:
    """Into how many parts, a power of two, the keys of each row are split."""
    wanted = min(-(-PROGRAMS * processors(device) // programs), -(-slots // BLOCK), MOST_PARTS)
    return triton.next_power_of_2(max(1, wanted))
