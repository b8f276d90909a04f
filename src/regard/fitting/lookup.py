"""What a model found in its training part, where it answers by looking up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor


@dataclass(frozen=True)
class Found:
    """row: its number in the training part. weight: how much it counts; those of all sum to 1.

    source, target  ids of what was read and of what was written; no source where that is no text.
    """

    row: int
    weight: float
    source: tuple[int, ...]
    target: tuple[int, ...]


@runtime_checkable
class LooksUp(Protocol):
    """A model whose answer is made of examples of training."""

    def looked_up(self, source: Tensor) -> list[Found]:
        """What it found for one source, (1, ...), the most similar first."""
        ...


@runtime_checkable
class ComparesSquares(Protocol):
    """A model that looks pictures up by their squares."""

    def differences(self, source: Tensor, rows: Sequence[int]) -> Tensor:
        """How far each square of one source, (1, ...), lies from those of examples of training, (n, R, C)."""
        ...
