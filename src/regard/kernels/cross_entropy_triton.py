"""softmax - one-hot of rows of logits in place, and their losses, in one Triton kernel.

A row is read twice, the second time mostly from the cache, and written once; torch's own operations pass over it nine
times, mostly in float32. The running maximum m and sum s of a row are those of the online softmax (Milakov and
Gimelshein 2018):

    m' = max(m, max_j x_j),   s' = s exp(m - m') + sum_j exp(x_j - m'),   loss = m + log s - x_target
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK, WARPS = 4096, 8


@triton.jit
def _rows(
    logits, targets, losses, stride, ignore_index, n_classes: tl.constexpr, padded: tl.constexpr, block: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    begin = logits + row * stride
    counted = target != ignore_index
    is_class = (target >= 0) & (target < n_classes)
    aim = tl.load(begin + tl.where(is_class, target, 0)).to(tl.float32)
    # Whoever looks at the loss is to see that a target is none of the classes.
    aim = tl.where(is_class, aim, float("nan"))
    m = tl.full((), float("-inf"), tl.float32)
    s = tl.zeros((block,), tl.float32)
    for start in range(0, n_classes, block):
        place = start + tl.arange(0, block)
        x = tl.load(begin + place, mask=place < n_classes, other=float("-inf")).to(tl.float32)
        # A block of nothing but -inf would make -inf - -inf.
        highest = tl.maximum(m, tl.maximum(tl.max(x), -1e30))
        s = s * tl.exp(m - highest) + tl.exp(x - highest)
        m = highest
    total = tl.sum(s)
    tl.store(losses + row, tl.where(counted, m + tl.log(total) - aim, 0.0))
    share = tl.where(counted, 1.0 / total, 0.0)
    for start in range(0, padded, block):
        place = start + tl.arange(0, block)
        x = tl.load(begin + place, mask=place < n_classes, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - m) * share
        p = tl.where((place == target) & counted, p - 1.0, p)
        tl.store(begin + place, p.to(logits.dtype.element_ty), mask=place < padded)


def gradient_in_place(
    logits: Tensor, targets: Tensor, n_classes: int, ignore_index: int, block: int = BLOCK, warps: int = WARPS
) -> Tensor:
    """Losses (N,) in float32 of logits (N, P), of which the first `n_classes` of each row are such; NaN where a target
    is no class. The gradient of their sum takes the place of the logits, zeros beyond the classes and in rows that do
    not count."""
    losses = torch.empty(len(logits), dtype=torch.float32, device=logits.device)
    if len(logits):
        sizes = {"n_classes": n_classes, "padded": logits.shape[1], "block": block}
        _rows[(len(logits),)](logits, targets, losses, logits.stride(0), ignore_index, **sizes, num_warps=warps)
    return losses
