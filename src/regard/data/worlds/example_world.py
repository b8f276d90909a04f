"""ExampleWorld: a small generated task whose best possible scores are known exactly."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic

from regard.data.example import E
from regard.data.worlds.base import Generated


@dataclass(frozen=True)
class ExampleWorld(Generated, Generic[E]):
    """Base of the worlds of examples.

    best  what the best possible model scores, such as {"exact_match": 1.0}.
    """

    best: ClassVar[dict[str, float]]

    @abstractmethod
    def example(self, seed: int) -> E:
        """The example that a 64-bit seed stands for."""

    def examples(self, split: str, count: int | None = None, seed: int | None = None) -> list[E]:
        """Examples 0 .. count-1 of a split: each a pure function of (seed, split, index)."""
        return [self.example(number) for number in self.seeds(split, count, seed)]
