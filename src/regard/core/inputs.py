"""What a model is called with, whatever its shape.

tokens                   (B, T), a text that is read from left to right, or as a whole
SourceTokens             a source that is read once, tokens or a picture, and the tokens that are written
PastKnown                numbers of the past, and what is known of the times ahead
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from regard.core.tree import walkable

NOT_COUNTED = -100  # a target that is no part of a loss; of numbers it is NaN


@walkable
@dataclass(frozen=True)
class SourceTokens:
    """source (B, S) or (B, 3, H, W), of which the first `lengths` (B,) are real; tokens (B, T)."""

    source: Tensor
    tokens: Tensor
    lengths: Tensor | None = None


@walkable
@dataclass(frozen=True)
class PastKnown:
    """past (B, S, 1 + K + P): the value, its circumstances and what else was measured. known (B, H, K): those ahead."""

    past: Tensor
    known: Tensor


Inputs = Tensor | SourceTokens | PastKnown
