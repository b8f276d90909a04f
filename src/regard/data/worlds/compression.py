"""Random words that must all be said again after a mark.

Compression of MAD (Poli et al. 2024) as text: a recurrence must have pressed all words into its state by the mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, numbered, uniform

MARK = "!"


@dataclass(frozen=True)
class Compression(Probe):
    """`length` random words of `kinds` kinds, a mark, and all of them again."""

    length: int = 12
    kinds: int = 16

    name: ClassVar[str] = "compression"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.length > 0 and self.kinds > 1, "a length of at least 1 and 2 kinds or more")

    @property
    def vocabulary(self) -> list[str]:
        return [MARK, *numbered("w", self.kinds)]

    def walk(self) -> Walk:
        kinds = uniform(numbered("w", self.kinds))
        told: list[str] = []
        for _ in range(self.length):
            told.append((yield Turn(kinds)))
        yield Turn({MARK: 1.0})
        for place, word in enumerate(told):
            yield Turn({word: 1.0}, place)
