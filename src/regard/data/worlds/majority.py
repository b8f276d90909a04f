"""Random letters, and at the end the one of two that came more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, uniform


@dataclass(frozen=True)
class Majority(Probe):
    """`length` random letters, a and b, a mark, and the one that came more often."""

    length: int = 25

    name: ClassVar[str] = "majority"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.length > 0 and self.length % 2 == 1, "an odd length")

    @property
    def vocabulary(self) -> list[str]:
        return ["a", "b", "?"]

    def walk(self) -> Walk:
        letters = uniform("ab")
        told = []
        for _ in range(self.length):
            told.append((yield Turn(letters)))
        yield Turn({"?": 1.0})
        yield Turn({max("ab", key=told.count): 1.0}, 0)
