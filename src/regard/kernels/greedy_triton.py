"""The most probable token of each row and its log-probability, as two Triton kernels; imported on first use only.

A program takes one part of one row: its largest logit m, the first token that has it, and l = sum of exp(x - m). Then

    M = max of m,   log p = -log(sum over parts of exp(m - M) l)

Of rows that hold NaN, infinity or nothing but minus infinity log p is NaN.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.choice import processors

BLOCK = 1024
MOST_PARTS = 64
FOUND = (torch.float32, torch.int32, torch.float32)


@triton.jit
def _parts(logits, tops, firsts, sums, stride, width, share, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    logits += row * stride
    low = part * share
    high = tl.minimum(low + share, width)
    m = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.full((BLOCK,), 0x7FFFFFFF, tl.int32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(low, high, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits + at, mask=at < high, other=float("-inf")).to(tl.float32)
        place = tl.where(x > m, at, place)
        larger = tl.maximum(m, x)
        # Of nothing but minus infinity the sum is 0.
        base = tl.where(larger == float("-inf"), 0.0, larger)
        total = total * tl.exp(m - base) + tl.exp(x - base)
        m = larger
    top = tl.max(m, 0)
    base = tl.where(top == float("-inf"), 0.0, top)
    tl.store(tops + row * PARTS + part, top)
    tl.store(firsts + row * PARTS + part, tl.min(tl.where(m == top, place, 0x7FFFFFFF), 0))
    tl.store(sums + row * PARTS + part, tl.sum(total * tl.exp(m - base), 0))


@triton.jit
def _joined(tops, firsts, sums, tokens, log_probs, width, n_parts, PARTS: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.arange(0, PARTS)
    at, real = row * PARTS + part, part < n_parts
    m = tl.load(tops + at, mask=real, other=float("-inf"))
    first = tl.load(firsts + at, mask=real, other=0x7FFFFFFF)
    total = tl.load(sums + at, mask=real, other=0.0)
    top = tl.max(m, 0)
    token = tl.min(tl.where(m == top, first, 0x7FFFFFFF), 0)
    tl.store(tokens + row, tl.where(token < width, token, 0).to(tl.int64))
    tl.store(log_probs + row, -tl.log(tl.sum(total * tl.exp(m - top), 0)))


def share_of_row(logits: Tensor, share: int, parts: int) -> list[Tensor]:
    """m, the first token that has it, and l of each part of so many logits, (B, parts) each."""
    rows, width = logits.shape
    found = [torch.empty(rows, parts, dtype=dtype, device=logits.device) for dtype in FOUND]
    grid = (rows, triton.cdiv(width, share))
    _parts[grid](logits, *found, logits.stride(0), width, share, PARTS=parts, BLOCK=BLOCK)
    return found


def greedy(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens (B,) and log-probabilities (B,) of logits (B, V)."""
    logits = logits if logits.stride(-1) == 1 else logits.contiguous()
    rows, width = logits.shape
    tokens = torch.empty(rows, dtype=torch.long, device=logits.device)
    log_probs = torch.empty(rows, dtype=torch.float32, device=logits.device)
    wanted = min(MOST_PARTS, triton.cdiv(4 * processors(logits.device), rows), triton.cdiv(width, BLOCK))
    share = triton.cdiv(width, wanted)
    n_parts = triton.cdiv(width, share)
    parts = triton.next_power_of_2(n_parts)
    _joined[(rows,)](*share_of_row(logits, share, parts), tokens, log_probs, width, n_parts, PARTS=parts, num_warps=1)
    return tokens, log_probs
