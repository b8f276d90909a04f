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
def _joined(tops, firsts, sums, tokens, log_probs, width, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = row * PARTS + tl.arange(0, PARTS)
    m, first, total = tl.load(tops + at), tl.load(firsts + at), tl.load(sums + at)
    top = tl.max(m, 0)
    token = tl.min(tl.where(m == top, first, 0x7FFFFFFF), 0)
    tl.store(tokens + row, tl.where(token < width, token, 0).to(tl.int64))
    tl.store(log_probs + row, -tl.log(tl.sum(total * tl.exp(m - top), 0)))


def greedy(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens (B,) and log-probabilities (B,) of logits (B, V)."""
    logits = logits if logits.stride(-1) == 1 else logits.contiguous()
    rows, width = logits.shape
    tokens = torch.empty(rows, dtype=torch.long, device=logits.device)
    log_probs = torch.empty(rows, dtype=torch.float32, device=logits.device)
    parts = min(MOST_PARTS, triton.next_power_of_2(triton.cdiv(4 * processors(logits.device), rows)))
    parts = min(parts, triton.next_power_of_2(triton.cdiv(width, BLOCK)))
    scratch = [torch.empty(rows, parts, dtype=dtype, device=logits.device) for dtype in _SCRATCH]
    _parts[(rows, parts)](
        logits, *scratch, logits.stride(0), width, triton.cdiv(width, parts), PARTS=parts, BLOCK=BLOCK
    )
    _joined[(rows,)](*scratch, tokens, log_probs, width, PARTS=parts, num_warps=1)
    return tokens, log_probs


_SCRATCH = (torch.float32, torch.int32, torch.float32)
