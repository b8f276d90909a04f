"""Attention with a window or with ALiBi's slopes as rules instead of masks: torch's flex attention, in compiled steps.

A mask of (T, S) numbers costs more memory traffic than the attention itself, and shuts out the fastest kernels. Here
the compiler writes one kernel with the rule inside, and blocks of keys that no query of a block sees are never read:

    score(i, j) - slope_h |i - j|  where  0 <= i - j < window

Which blocks these are is told by their borders, block by block, never pair by pair.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from regard.kernels.choice import NARROW, has_triton

DEVICES = ("cuda",)
BLOCK = 128


def flex_takes(q: Tensor, k: Tensor, dropout: float) -> bool:
    """Whether a call from the beginning may be made so: within what is compiled, of whole blocks, without dropout."""
    width = q.shape[-1]
    whole = q.shape[1] == k.shape[1] and q.shape[1] % BLOCK == 0 and width >= 16 and width & (width - 1) == 0
    usable = torch.compiler.is_compiling() and q.device.type in DEVICES and q.dtype in NARROW and dropout == 0
    return usable and whole and (q.device.type != "cuda" or has_triton(q.device))


def flex_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool,
    window: int | None = None,
    slopes: Tensor | None = None,
    scale: float = 1.0,
) -> Tensor:
    """sum_j a_ij v_j, (B, T, H, K), of queries, keys and values (B, T, H, K) that begin together.

    slopes: (H,), how much a score is lowered for each position of distance; None for not at all.
    """
    from torch.nn.attention.flex_attention import flex_attention as flex

    def lowered(score: Tensor, _row: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return score if slopes is None else score - slopes[head] * (i - j).abs()

    length = q.shape[1]
    mask = block_mask(length, causal, window, q.device) if causal or window is not None else None
    parts = (part.transpose(1, 2) for part in (q, k, v))
    found: Any = flex(*parts, score_mod=None if slopes is None else lowered, block_mask=mask, scale=scale)
    return found.transpose(1, 2)


def block_mask(length: int, causal: bool, window: int | None, device: torch.device) -> Any:
    """Which blocks of keys a block of queries looks at, in part or in whole."""
    from torch.nn.attention.flex_attention import BlockMask

    reach = length if window is None else window

    def seen(_row: Tensor, _head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        near = (i - j).abs() < reach
        return near & (i >= j) if causal else near

    block = torch.arange(math.ceil(length / BLOCK), device=device)
    apart = BLOCK * (block[:, None] - block)  # from the first key of a block to the first query of another
    nearest = (apart.abs() - (BLOCK - 1)).clamp(min=0)
    some = nearest < reach
    whole = apart.abs() + (BLOCK - 1) < reach
    if causal:
        some, whole = some & (apart >= 0), whole & (apart >= BLOCK)
    lists = [part for which in (some & ~whole, whole) for part in _listed(which)]
    return BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=BLOCK, mask_mod=seen, seq_lengths=(length, length))


def _listed(which: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row there are, (1, 1, n), and their numbers, those that count first, (1, 1, n, n)."""
    order = torch.argsort((~which).to(torch.int32), dim=-1, stable=True).to(torch.int32)
    return which.sum(-1, dtype=torch.int32)[None, None], order[None, None]
