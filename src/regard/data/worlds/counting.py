"""Counting: probes of random letters, at the end of which is asked how many of a kind there were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, uniform


@dataclass(frozen=True)
class Parity(Probe):
    """`length` random bits, a mark, and the answer. Every bit decides, so that the first is as far back as it goes."""

    length: int = 16

    name: ClassVar[str] = "parity"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.length > 0, "a length of at least 1")

    @property
    def vocabulary(self) -> list[str]:
        return ["0", "1", "?", "even", "odd"]

    def walk(self) -> Walk:
        bits = uniform("01")
        ones = 0
        for _ in range(self.length):
            ones += (yield Turn(bits)) == "1"
        yield Turn({"?": 1.0})
        yield Turn({"odd" if ones % 2 else "even": 1.0}, 0)


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
