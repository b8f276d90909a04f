"""Words at random places among noise, which must be said again in their order.

A task of Gu and Dao 2023, 4.1.1, and of MAD (Poli et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, numbered

NOISE, MARK = ".", "!"


@dataclass(frozen=True)
class SelectiveCopy(Probe):
    """`words` words of `kinds` kinds at random places among `length`, noise elsewhere; a mark; the words again.

    All choices of places are equally likely.
    """

    length: int = 48
    words: int = 8
    kinds: int = 8

    name: ClassVar[str] = "selective_copy"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            1 <= self.words <= self.length and self.kinds > 1, "words from 1 to the length and 2 kinds or more"
        )

    @property
    def vocabulary(self) -> list[str]:
        return [NOISE, MARK, *numbered("w", self.kinds)]

    def walk(self) -> Walk:
        kinds = numbered("w", self.kinds)
        told: list[tuple[str, int]] = []
        for place in range(self.length):
            # Of the places left, as many hold a word as words are left.
            part = (self.words - len(told)) / (self.length - place)
            chances = dict.fromkeys(kinds, part / self.kinds) if part else {}
            word = yield Turn(chances | ({NOISE: 1 - part} if part < 1 else {}))
            if word != NOISE:
                told.append((word, place))
        yield Turn({MARK: 1.0})
        for word, place in told:
            yield Turn({word: 1.0}, place)
