"""How fast steps are, and how much memory they take: a part of benchmarks/training.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

WARM_UPS = 6
PEAK = 989e12  # operations a second of an H200 in bfloat16, by its maker


@dataclass(frozen=True)
class Found:
    """What a row came to."""

    tokens_per_second: float
    gigabytes: float
    first_seconds: float
    loss: float
    share: float
    told: str


def operations(model: nn.Module, length: int) -> float:
    """Of a token: six for each weight of a product, and those of the scores (Chowdhery et al. 2022, B)."""
    seen, total = set[int](), 0.0
    for part in model.modules():
        if isinstance(part, (nn.Linear, nn.LSTM)):
            for weight in part.parameters(recurse=False):
                total += 6 * weight.numel() if weight.dim() == 2 and id(weight) not in seen else 0
                seen.add(id(weight))
        if type(part).__name__ in ("SelfAttention", "PlainAttention"):
            total += 6 * length * part.heads_to_output.in_features
    return total


def timed(step: Callable[[], Tensor], steps: int, tokens: int, cost: float, told: Callable[[], str]) -> Found:
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    for _ in range(WARM_UPS):
        loss = step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    for _ in range(steps):
        loss = step()
    torch.cuda.synchronize()
    speed = steps * tokens / (time.perf_counter() - start)
    # A captured graph holds its memory without allocating it anew.
    held = max(torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved() if "graph" in told() else 0)
    return Found(speed, held / 2**30, first, float(loss), speed * cost / PEAK, told())
