"""Lag weights: what a linear forecast looks back at, in groups that can be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True)
class LagGroup:
    """name: of the group. first: its first column. columns: the name of each."""

    name: str
    first: int
    columns: tuple[str, ...]


@runtime_checkable
class LooksBack(Protocol):
    """A model whose forecast is a weighted sum of such columns."""

    def lag_weights(self, names: Sequence[str]) -> list[tuple[LagGroup, np.ndarray]]:
        """By how much each time ahead (H, n) moves with one deviation of each column, by groups of columns.

        names: of what is known ahead, then of what is past alone, then of static numbers.
        """
        ...


def laid_out(parts: Sequence[tuple[str, Sequence[str]]]) -> list[LagGroup]:
    """Groups of columns that stand one after the other."""
    found, first = [], 0
    for name, columns in parts:
        found.append(LagGroup(name, first, tuple(columns)))
        first += len(columns)
    return found
