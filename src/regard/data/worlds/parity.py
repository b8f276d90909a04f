"""Random bits, and at the end whether the number of ones is odd or even."""

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
