"""Static columns: what stays the same all along a series. A word becomes a 1 among 0s, a number is scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.core.config import decode
from regard.data.table import is_number
from regard.errors import DataError, UsageError

MOST_WORDS = 1000


@dataclass(frozen=True)
class StaticColumn:
    """words: those of the column, each with a number of its own; none of a column of numbers, which has a scale."""

    name: str
    words: tuple[str, ...] = ()
    centre: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(cls, name: str, cells: Sequence[str]) -> StaticColumn:
        """The column of some series, a cell for each."""
        if all(is_number(cell) for cell in cells):
            numbers = np.array([float(cell) for cell in cells])
            return cls(name, (), float(numbers.mean()), float(numbers.std()) or 1.0)
        words = tuple(sorted(set(cells)))
        if len(words) > MOST_WORDS:
            raise DataError(f"{name}: {len(words):,} different words are too many for a static column; leave it out")
        return cls(name, words)

    @property
    def names(self) -> tuple[str, ...]:
        """Of its numbers."""
        return tuple(f"{self.name} {word}" for word in self.words) or (self.name,)

    def numbers(self, cell: str, where: str) -> list[float]:
        """A cell as the model reads it."""
        if not self.words:
            if not is_number(cell):
                raise DataError(f"{where}: {self.name} is {cell!r}, and was a number in training")
            return [(float(cell) - self.centre) / self.scale]
        if cell not in self.words:
            raise DataError(f"{where}: {self.name} is {cell!r}, which no series of the training had")
        return [float(cell == word) for word in self.words]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "words": list(self.words), "centre": self.centre, "scale": self.scale}

    @classmethod
    def from_dict(cls, facts: Any, where: str) -> StaticColumn:
        """The column that `to_dict` told."""
        hints = {"name": str, "words": tuple[str, ...], "centre": float, "scale": float}
        if not isinstance(facts, dict) or facts.keys() != hints.keys():
            raise UsageError(f"{where}: expected an object with {', '.join(hints)}")
        found = cls(**{key: decode(facts[key], hint, f"{where}.{key}") for key, hint in hints.items()})
        if not np.isfinite([found.centre, found.scale]).all() or found.scale <= 0:
            raise UsageError(f"{where}: expected a finite centre and a scale above 0")
        return found
