"""A token drawn from each row of logits under temperature, top-k, top-p and min-p, by Triton kernels; imported on first
use only. The readable forms are in decoding/logits_processing.py.

Nothing is sorted. What top-k and top-p keep are the tokens above a threshold and the first few at it, and a threshold
is found by searching: with z <= 0 the tempered logits less their largest, the bits of -z, read as an integer, have the
order of -z, so that the search is over 31 bits, of which each launch settles four. A row is split into parts, one
program each, so that a single row keeps many processors busy; what the parts have found is added up, always in the same
order, by whoever needs it next.

    top-k   the least c with  count of (-z <= c)  at least k
    top-p   the least c with  mass of (-z <= c)   at least p times the mass of what top-k has kept

Glossary
tops, firsts, sums   of each part: its largest logit, the first token that has it, and the mass of its raw distribution
found                (B, WAYS, PARTS) what the parts have counted
cut                  (B, 3) bound, ties and mass: kept are the tokens whose -z is below the bound, and the first `ties`
                     of those at it
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.greedy_triton import share_of_row

BLOCK = 1024
WAYS = 16
N_LEVELS = 8  # so that WAYS ** N_LEVELS exceeds the highest bound
LEVELS = tl.constexpr(N_LEVELS)
HIGHEST = tl.constexpr(0x7F800000)  # the bits of infinity
NOBODY = tl.constexpr(0x7FFFFFFF)
MANY = tl.constexpr(1e9)


@triton.jit
def _largest(tops, row, n_parts, PARTS: tl.constexpr):
    part = tl.arange(0, PARTS)
    return tl.max(tl.load(tops + row * PARTS + part, mask=part < n_parts, other=float("-inf")), 0)


@triton.jit
def _tempered(logits, at, width, largest, temperature):
    """-z of some tokens as an integer, and exp(z); a token that does not exist has a probability of 0."""
    x = tl.load(logits + at, mask=at < width, other=float("-inf")).to(tl.float32)
    z = tl.div_rn(x - largest, temperature)
    return tl.where(at < width, tl.abs(z).to(tl.int32, bitcast=True), NOBODY), tl.exp(z).to(tl.float64)


@triton.jit
def _added(found, row, i, n_parts, PARTS: tl.constexpr, WAYS: tl.constexpr):
    """What all parts have counted in way i."""
    part = tl.arange(0, PARTS)
    return tl.sum(tl.load(found + (row * WAYS + i) * PARTS + part, mask=part < n_parts, other=0.0), 0)


@triton.jit
def _target(limits, cut, row, MASS: tl.constexpr):
    """What a threshold has to reach: k, or p times the mass."""
    limit = tl.load(limits + row)
    if MASS:
        limit = limit * tl.load(cut + row * 3 + 2)
    return limit


@triton.jit
def _range(
    limits, cut, ranges, found, row, n_parts, width,
    LEVEL: tl.constexpr, MASS: tl.constexpr, PARTS: tl.constexpr, WAYS: tl.constexpr,
):  # fmt: skip
    """Between which bounds a threshold lies at some level, by what was counted at the one before."""
    if LEVEL == 0:
        high = tl.load(cut + row * 3).to(tl.int64)
        limit = tl.load(limits + row)
        searches = limit < 1 if MASS else limit < width
        low = tl.where(searches, 0, high)
    else:
        before = ranges + (row * (LEVELS + 1) + LEVEL - 1) * 2
        low, high = tl.load(before), tl.load(before + 1)
        i, part = tl.arange(0, WAYS), tl.arange(0, PARTS)
        place = (row * WAYS + i)[:, None] * PARTS + part[None, :]
        reach = tl.sum(tl.load(found + place, mask=(part < n_parts)[None, :], other=0.0), 1)
        reached = (reach >= _target(limits, cut, row, MASS)) & (i > 0)
        first = tl.min(tl.where(reached, i, WAYS), 0).to(tl.int64)
        above = tl.where(first > 1, low + (high - low) * (first - 1) // WAYS + 1, low)
        high = tl.where(first < WAYS, low + (high - low) * first // WAYS, high)
        low = tl.minimum(above, high)
    return low, high


@triton.jit
def _search(
    logits, temperatures, tops, limits, cut, ranges, before, found, stride, width, n_parts,
    LEVEL: tl.constexpr, MASS: tl.constexpr, PARTS: tl.constexpr, WAYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Mass, or count, of the tokens of a part up to each of WAYS - 1 thresholds."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    low, high = _range(limits, cut, ranges, before, row, n_parts, width, LEVEL, MASS, PARTS, WAYS)
    if part == 0:
        tl.store(ranges + (row * (LEVELS + 1) + LEVEL) * 2, low)
        tl.store(ranges + (row * (LEVELS + 1) + LEVEL) * 2 + 1, high)
    largest = _largest(tops, row, n_parts, PARTS)
    temperature = tl.load(temperatures + row).to(tl.float32)
    at = part * BLOCK + tl.arange(0, BLOCK)
    bits, p = _tempered(logits + row * stride, at, width, largest, temperature)
    if not MASS:
        p = tl.full((BLOCK,), 1.0, tl.float64)
    for i in tl.static_range(1, WAYS):
        c = (low + (high - low) * i // WAYS).to(tl.int32)
        reach = tl.sum(tl.where(bits <= c, p, 0.0), 0)
        tl.store(found + (row * WAYS + i) * PARTS + part, reach)


@triton.jit
def _below(
    logits, temperatures, tops, limits, cut, ranges, before, found, stride, width, n_parts,
    LEVEL: tl.constexpr, MASS: tl.constexpr, PARTS: tl.constexpr, WAYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Count and mass of the tokens of a part below the threshold that was found, and how many are at it.

    At level 0 nothing was searched for: all are below.
    """
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    bound = tl.full((), NOBODY, tl.int64)
    if LEVEL > 0:
        _, bound = _range(limits, cut, ranges, before, row, n_parts, width, LEVEL, MASS, PARTS, WAYS)
        if part == 0:
            tl.store(ranges + (row * (LEVELS + 1) + LEVEL) * 2 + 1, bound)
    largest = _largest(tops, row, n_parts, PARTS)
    temperature = tl.load(temperatures + row).to(tl.float32)
    at = part * BLOCK + tl.arange(0, BLOCK)
    bits, p = _tempered(logits + row * stride, at, width, largest, temperature)
    bound = bound.to(tl.int32)
    place = found + row * WAYS * PARTS + part
    tl.store(place, tl.sum((bits < bound).to(tl.float64), 0))
    tl.store(place + PARTS, tl.sum(tl.where(bits < bound, p, 0.0), 0))
    tl.store(place + 2 * PARTS, tl.sum(((bits == bound) & (at < width)).to(tl.float64), 0))


@triton.jit
def _settle(
    limits, cut, ranges, found, width, n_parts,
    LEVEL: tl.constexpr, MASS: tl.constexpr, PARTS: tl.constexpr, WAYS: tl.constexpr,
):  # fmt: skip
    """What a search has found becomes the cut of each row."""
    row = tl.program_id(0).to(tl.int64)
    count, below = _added(found, row, 0, n_parts, PARTS, WAYS), _added(found, row, 1, n_parts, PARTS, WAYS)
    if LEVEL == 0:
        tl.store(cut + row * 3, tl.full((), HIGHEST, tl.float64))
        tl.store(cut + row * 3 + 1, tl.full((), MANY, tl.float64))
        tl.store(cut + row * 3 + 2, below)
    else:
        limit = tl.load(limits + row)
        bound = tl.load(ranges + (row * (LEVELS + 1) + LEVEL) * 2 + 1)
        each = tl.exp(-bound.to(tl.int32).to(tl.float32, bitcast=True)).to(tl.float64)
        ties = tl.load(cut + row * 3 + 1)
        if MASS:
            wanted = (_target(limits, cut, row, MASS) - below) / tl.where(each > 0, each, 1.0)
            wanted = tl.where(each > 0, tl.minimum(tl.maximum(tl.ceil(wanted), 1.0), MANY), MANY)
            ties = tl.where(bound == tl.load(cut + row * 3).to(tl.int64), tl.minimum(ties, wanted), wanted)
            searched = limit < 1
        else:
            ties = limit - count
            searched = limit < width
        if searched:
            tl.store(cut + row * 3, bound.to(tl.float64))
            tl.store(cut + row * 3 + 1, ties)
            tl.store(cut + row * 3 + 2, below + ties * each)


@triton.jit
def _staying(logits, temperatures, log_min_ps, tops, cut, at_bound, row, part, width, n_parts,
             PARTS: tl.constexpr, WAYS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """The probabilities of the tokens of a part that stay, in float64; 0 for the others."""
    bound, ties = tl.load(cut + row * 3).to(tl.int32), tl.load(cut + row * 3 + 1)
    least = tl.abs(tl.load(log_min_ps + row).to(tl.float32)).to(tl.int32, bitcast=True)
    ties = tl.where(least < bound, MANY, ties)
    # Tokens at the bound in the parts before this one: the lower number comes first.
    others = tl.arange(0, PARTS)
    met = tl.load(at_bound + (row * WAYS + 2) * PARTS + others, mask=others < tl.minimum(part, n_parts), other=0.0)
    met = tl.where(least < bound, 0.0, tl.sum(met, 0))
    bound = tl.minimum(least, bound)
    largest = _largest(tops, row, n_parts, PARTS)
    at = part * BLOCK + tl.arange(0, BLOCK)
    bits, p = _tempered(logits, at, width, largest, tl.load(temperatures + row).to(tl.float32))
    level = (bits == bound).to(tl.int32)
    stays = (bits < bound) | ((bits == bound) & (met + tl.cumsum(level, 0).to(tl.float64) <= ties))
    return tl.where(stays & (at < width), p, 0.0)


@triton.jit
def _keep(
    logits, temperatures, log_min_ps, tops, cut, at_bound, kept, stride, width, n_parts,
    PARTS: tl.constexpr, WAYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The mass of what stays in each part."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    weight = _staying(logits + row * stride, temperatures, log_min_ps, tops, cut, at_bound, row, part, width, n_parts,
                      PARTS, WAYS, BLOCK)  # fmt: skip
    tl.store(kept + row * PARTS + part, tl.sum(weight, 0))


@triton.jit
def _pick(
    logits, temperatures, log_min_ps, tops, firsts, sums, cut, at_bound, kept, greedies, uniforms, tokens, log_probs,
    stride, width, n_parts, PARTS: tl.constexpr, WAYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The token at which the running mass first exceeds its share, in the part where it does."""
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    mass = tl.load(kept + row * PARTS + parts, mask=parts < n_parts, other=0.0)
    running = tl.cumsum(mass, 0)
    target = tl.load(uniforms + row).to(tl.float64) * tl.max(running, 0)
    # Rounding may carry the target to the total itself: then it is the last part, and token, that stays.
    last = tl.max(tl.where(mass > 0, parts, 0), 0)
    part = tl.min(tl.where((running > target) & (mass > 0), parts, last), 0)
    before = tl.sum(tl.where(parts < part, mass, 0.0), 0)
    weight = _staying(logits + row * stride, temperatures, log_min_ps, tops, cut, at_bound, row, part, width, n_parts,
                      PARTS, WAYS, BLOCK)  # fmt: skip
    at = part * BLOCK + tl.arange(0, BLOCK)
    exceeds = (weight > 0) & (before + tl.cumsum(weight, 0) > target)
    found = tl.min(tl.where(exceeds, at, NOBODY), 0)
    token = tl.where(found < NOBODY, found, tl.max(tl.where(weight > 0, at, 0), 0))
    top = tl.load(tops + row * PARTS + parts, mask=parts < n_parts, other=float("-inf"))
    largest = tl.max(top, 0)
    best = tl.load(firsts + row * PARTS + parts, mask=parts < n_parts, other=NOBODY)
    best = tl.min(tl.where(top == largest, best, NOBODY), 0)
    token = tl.where(tl.load(greedies + row).to(tl.int1), tl.where(best < width, best, 0), token)
    total = tl.load(sums + row * PARTS + parts, mask=parts < n_parts, other=0.0) * tl.exp(top - largest)
    chosen = tl.load(logits + row * stride + token).to(tl.float32)
    tl.store(tokens + row, token.to(tl.int64))
    tl.store(log_probs + row, (chosen - largest) - tl.log(tl.sum(total, 0)))


def draw(logits: Tensor, settings: tuple[Tensor, ...], uniform: Tensor, cuts: frozenset[str]) -> tuple[Tensor, Tensor]:
    """A token for each row of logits (B, V), and its raw log-probability.

    settings  temperature, top_k, top_p, log_min_p and greedy, (B, 1) each.
    cuts      names of those that cut anything off in some row.
    """
    logits = logits if logits.stride(-1) == 1 else logits.contiguous()
    (rows, width), device = logits.shape, logits.device
    temperature, top_k, top_p, log_min_p, greedy = (column[:, 0] for column in settings)
    n_parts = triton.cdiv(width, BLOCK)
    sizes = {"PARTS": triton.next_power_of_2(n_parts), "WAYS": WAYS}
    tops, firsts, sums = share_of_row(logits, BLOCK, sizes["PARTS"])
    cut = torch.empty(rows, 3, dtype=torch.float64, device=device)
    ranges = torch.empty(rows, N_LEVELS + 1, 2, dtype=torch.long, device=device)
    one, other = torch.empty(2, rows, WAYS, sizes["PARTS"], dtype=torch.float64, device=device)
    grid, shape = (rows, n_parts), (logits.stride(0), width, n_parts)

    def settled(limits: Tensor, levels: int, mass: bool) -> None:
        """The cut after a search of so many levels."""
        nonlocal one, other
        seen = (logits, temperature, tops, limits, cut, ranges)
        for level in range(levels):
            _search[grid](*seen, one, other, *shape, LEVEL=level, MASS=mass, BLOCK=BLOCK, **sizes)
            one, other = other, one
        _below[grid](*seen, one, other, *shape, LEVEL=levels, MASS=mass, BLOCK=BLOCK, **sizes)
        one, other = other, one
        found = (limits, cut, ranges, one, width, n_parts)
        _settle[(rows,)](*found, LEVEL=levels, MASS=mass, num_warps=1, **sizes)

    settled(top_k, 0, mass=False)
    for name, limits in (("top_k", top_k), ("top_p", top_p)):
        if name in cuts:
            settled(limits, N_LEVELS, mass=name == "top_p")
    kept = torch.empty(rows, sizes["PARTS"], dtype=torch.float64, device=device)
    _keep[grid](logits, temperature, log_min_p, tops, cut, one, kept, *shape, BLOCK=BLOCK, **sizes)
    tokens = torch.empty(rows, dtype=torch.long, device=device)
    log_probs = torch.empty(rows, dtype=torch.float32, device=device)
    _pick[(rows,)](
        logits, temperature, log_min_p, tops, firsts, sums, cut, one, kept, greedy, uniform, tokens, log_probs, *shape,
        BLOCK=BLOCK, **sizes,
    )  # fmt: skip
    return tokens, log_probs
