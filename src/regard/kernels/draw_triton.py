"""A token drawn from each row of logits under temperature, top-k, top-p and min-p, as one Triton kernel; imported on
first use only. The readable forms are in decoding/logits_processing.py.

Nothing is sorted. What top-k and top-p keep are the tokens above a threshold and the first few at it, and a threshold
is found by searching: with z <= 0 the tempered logits less their largest, the bits of -z, read as an integer, have the
order of -z, so that the search is over 31 bits, four ways at a time. One program takes one row, which its cache holds.

    top-k   the least c with  count of (-z <= c)  at least k
    top-p   the least c with  mass of (-z <= c)   at least p times the mass of what top-k has kept
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096
WARPS = 16


@triton.jit
def _tempered(logits, at, width, largest, temperature):
    """-z of some tokens as an integer, and exp(z); a token that does not exist has a probability of 0."""
    x = tl.load(logits + at, mask=at < width, other=float("-inf")).to(tl.float32)
    z = tl.div_rn(x - largest, temperature)
    return tl.where(at < width, tl.abs(z).to(tl.int32, bitcast=True), 0x7FFFFFFF), tl.exp(z)


@triton.jit
def _below(logits, width, largest, temperature, c, BLOCK: tl.constexpr):
    """Count and mass of the tokens whose -z is less than c."""
    count = tl.zeros((BLOCK,), tl.int64)
    mass = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, width, BLOCK):
        bits, p = _tempered(logits, start + tl.arange(0, BLOCK), width, largest, temperature)
        count += (bits < c).to(tl.int64)
        mass += tl.where(bits < c, p.to(tl.float64), 0.0)
    return tl.sum(count, 0), tl.sum(mass, 0)


@triton.jit
def _searched(logits, width, largest, temperature, target, high, MASS: tl.constexpr, BLOCK: tl.constexpr):
    """The least c up to `high` at which the mass, or count, of the tokens with -z of at most c reaches `target`."""
    low = high * 0
    while low < high:
        quarter = (high - low) // 4
        a, b, c = low + quarter, low + 2 * quarter, low + 3 * quarter
        in_a = tl.zeros((BLOCK,), tl.float64)
        in_b = tl.zeros((BLOCK,), tl.float64)
        in_c = tl.zeros((BLOCK,), tl.float64)
        for start in range(0, width, BLOCK):
            bits, p = _tempered(logits, start + tl.arange(0, BLOCK), width, largest, temperature)
            weight = p.to(tl.float64) if MASS else tl.full((BLOCK,), 1.0, tl.float64)
            in_a += tl.where(bits <= a, weight, 0.0)
            in_b += tl.where(bits <= b, weight, 0.0)
            in_c += tl.where(bits <= c, weight, 0.0)
        at_a, at_b, at_c = tl.sum(in_a, 0) >= target, tl.sum(in_b, 0) >= target, tl.sum(in_c, 0) >= target
        low = tl.where(at_a, low, tl.where(at_b, a + 1, tl.where(at_c, b + 1, c + 1)))
        high = tl.where(at_a, a, tl.where(at_b, b, tl.where(at_c, c, high)))
    return high


@triton.jit
def _draw(
    logits, temperatures, top_ks, top_ps, log_min_ps, greedies, uniforms, tokens, log_probs, stride, width,
    CUT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    temperature = tl.load(temperatures + row).to(tl.float32)
    # The model's own distribution: its largest logit, the first token that has it, and the sum.
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.load(logits + at, mask=at < width, other=float("-inf")).to(tl.float32))
    largest = tl.max(top, 0)
    first = tl.full((BLOCK,), 0x7FFFFFFF, tl.int32)
    sums = tl.zeros((BLOCK,), tl.float64)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits + at, mask=at < width, other=float("-inf")).to(tl.float32)
        first = tl.minimum(first, tl.where((x == largest) & (at < width), at, 0x7FFFFFFF))
        sums += tl.where(at < width, tl.exp(x - largest), 0.0).to(tl.float64)
        total += tl.where(at < width, tl.exp(tl.div_rn(x - largest, temperature)), 0.0).to(tl.float64)
    # Kept are the tokens below `bound`, and the first `ties` of those at it.
    bound = tl.full((), 0x7F800000, tl.int32)
    ties = tl.full((), 0x7FFFFFFF, tl.int64)
    mass = tl.sum(total, 0)
    if CUT:
        top_k, top_p = tl.load(top_ks + row), tl.load(top_ps + row)
        if top_k < width:
            bound = _searched(logits, width, largest, temperature, top_k.to(tl.float64), bound, False, BLOCK)
            count, below = _below(logits, width, largest, temperature, bound, BLOCK)
            ties = top_k.to(tl.int64) - count
            mass = below + ties.to(tl.float64) * tl.exp(-bound.to(tl.float32, bitcast=True)).to(tl.float64)
        if top_p < 1:
            target = top_p.to(tl.float64) * mass
            c = _searched(logits, width, largest, temperature, target, bound, True, BLOCK)
            count, below = _below(logits, width, largest, temperature, c, BLOCK)
            each = tl.exp(-c.to(tl.float32, bitcast=True)).to(tl.float64)
            wanted = tl.where(each > 0, tl.ceil((target - below) / tl.where(each > 0, each, 1.0)), 1e9)
            wanted = tl.minimum(tl.maximum(wanted, 1.0), 1e9).to(tl.int64)
            ties = tl.where(c == bound, tl.minimum(ties, wanted), wanted)
            bound = c
        least = tl.abs(tl.load(log_min_ps + row).to(tl.float32)).to(tl.int32, bitcast=True)
        ties = tl.where(least < bound, 0x7FFFFFFF, ties)
        bound = tl.minimum(least, bound)
        # Of the tokens that stay, in the order of their numbers.
        kept = tl.zeros((BLOCK,), tl.float64)
        met = tl.zeros((), tl.int64)
        for start in range(0, width, BLOCK):
            bits, p = _tempered(logits, start + tl.arange(0, BLOCK), width, largest, temperature)
            level = (bits == bound).to(tl.int64)
            stays = (bits < bound) | ((bits == bound) & (met + tl.cumsum(level, 0) <= ties))
            kept += tl.where(stays, p.to(tl.float64), 0.0)
            met += tl.sum(level, 0)
        mass = tl.sum(kept, 0)
    target = tl.load(uniforms + row).to(tl.float64) * mass
    found = tl.full((), 0x7FFFFFFF, tl.int32)
    last = tl.zeros((), tl.int32)
    met = tl.zeros((), tl.int64)
    before = tl.zeros((), tl.float64)
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        bits, p = _tempered(logits, at, width, largest, temperature)
        level = (bits == bound).to(tl.int64)
        stays = ((bits < bound) | ((bits == bound) & (met + tl.cumsum(level, 0) <= ties))) & (p > 0)
        weight = tl.where(stays, p.to(tl.float64), 0.0)
        running = before + tl.cumsum(weight, 0)
        found = tl.minimum(found, tl.min(tl.where(stays & (running > target), at, 0x7FFFFFFF), 0))
        # Rounding may carry the target to the total itself: then it is the last token that stays.
        last = tl.maximum(last, tl.max(tl.where(stays, at, 0), 0))
        met += tl.sum(level, 0)
        before += tl.sum(weight, 0)
    token = tl.where(found < 0x7FFFFFFF, found, last)
    best = tl.min(first, 0)
    token = tl.where(tl.load(greedies + row) != 0, tl.where(best < width, best, 0), token)
    chosen = tl.load(logits + token).to(tl.float32)
    tl.store(tokens + row, token.to(tl.int64))
    tl.store(log_probs + row, (chosen - largest) - tl.log(tl.sum(sums, 0)).to(tl.float32))


def draw(logits: Tensor, settings: tuple[Tensor, ...], uniform: Tensor, cut: bool) -> tuple[Tensor, Tensor]:
    """A token for each row of logits (B, V), and its raw log-probability.

    settings  temperature, top_k, top_p, log_min_p and greedy, (B, 1) each.
    cut       whether any row has one of the last three but greedy.
    """
    logits = logits if logits.stride(-1) == 1 else logits.contiguous()
    rows, width = logits.shape
    tokens = torch.empty(rows, dtype=torch.long, device=logits.device)
    log_probs = torch.empty(rows, dtype=torch.float32, device=logits.device)
    *columns, greedy = (column[:, 0].contiguous() for column in settings)
    columns.append(greedy.to(torch.int32))
    _draw[(rows,)](
        logits, *columns, uniform, tokens, log_probs, logits.stride(0), width, CUT=cut, BLOCK=BLOCK, num_warps=WARPS
    )
    return tokens, log_probs
