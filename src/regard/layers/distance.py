"""What the distance between a query and a key adds to their score: linear biases (ALiBi) and learned buckets (T5).

    alibi     - m_h |t - j|                                                       Press et al. 2022, 3
    relative  b[bucket(t - j), h]      a learned number for each bucket and head  Raffel et al. 2020, 2.1

Half of the buckets are one distance each; those beyond it, up to `farthest`, get wider with their logarithm, and the
last one has all that is farther. What looks both ways has half of the buckets for what comes after a position.

Glossary
m_h  slope of a head, see layers/position.py    t, j  places of a query and of a key
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.layers.position import alibi_slopes


@dataclass(frozen=True)
class RelativeConfig(Config, kind="relative"):
    """n_buckets: numbers for each head. farthest: the distance from which on all have the same one."""

    n_buckets: int = 32
    farthest: int = 128

    def __post_init__(self) -> None:
        check(self.n_buckets >= 4 and self.n_buckets % 2 == 0, f"n_buckets must be even, from 4 on: {self.n_buckets}")
        check(self.farthest > self.n_buckets, f"farthest must exceed n_buckets {self.n_buckets}: {self.farthest}")


RELATIVE = RelativeConfig()


class LinearBias(nn.Module):
    """-m_h |t - j|."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads

    def forward(self, distance: Tensor, like: Tensor) -> Tensor:
        """(B, H, T, S) of distances (B, T, S), in the number type of `like`."""
        return -alibi_slopes(self.n_heads, like.device).to(like.dtype)[:, None, None] * distance.abs()[:, None]


class RelativeBias(nn.Module):
    """A learned number for each bucket of distances and each head."""

    def __init__(self, config: RelativeConfig, n_heads: int, *, causal: bool) -> None:
        super().__init__()
        self.config, self.causal = config, causal
        self.bucket_to_heads = nn.Embedding(config.n_buckets, n_heads)

    def forward(self, distance: Tensor, like: Tensor) -> Tensor:
        """(B, H, T, S) of distances (B, T, S), in the number type of `like`."""
        return self.bucket_to_heads(self.buckets(distance)).to(like.dtype).permute(0, 3, 1, 2)

    def buckets(self, distance: Tensor) -> Tensor:
        """The bucket of each distance: how far a key lies behind its query, below 0 where it comes after it."""
        count, first = self.config.n_buckets, torch.zeros_like(distance)
        if self.causal:
            distance = distance.clamp(min=0)
        else:
            count //= 2
            first, distance = (distance < 0) * count, distance.abs()
        single = count // 2
        # In float32, as models have learnt it: at the edges of buckets more digits would say another one.
        wide = torch.log(distance.clamp(min=1).float() / single) / math.log(self.config.farthest / single)
        far = (single + (wide * (count - single)).long()).clamp(max=count - 1)
        return first + torch.where(distance < single, distance, far)


def distance_bias(position: str, n_heads: int, relative: RelativeConfig, *, causal: bool) -> nn.Module | None:
    """What such positions add to the scores; None where that is nothing."""
    if position == "alibi":
        return LinearBias(n_heads)
    return RelativeBias(relative, n_heads, causal=causal) if position == "relative" else None
