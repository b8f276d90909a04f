"""Copying: probes of words that must be said again after a mark, all of them, some, or one.

Selective copying (Gu and Dao 2023, 4.1.1, and MAD, Poli et al. 2024), compression (MAD) as text, and induction heads
(Gu and Dao 2023, 4.1.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, numbered, uniform

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


@dataclass(frozen=True)
class Induction(Probe):
    """`length` random words of `kinds` kinds, among them one mark; at the end the mark again, and what came after it.

    The mark stands at any place but the last, all equally likely.
    """

    length: int = 64
    kinds: int = 16

    name: ClassVar[str] = "induction"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.length > 1 and self.kinds > 1, "a length of at least 2 and 2 kinds or more")

    @property
    def vocabulary(self) -> list[str]:
        return [MARK, *numbered("w", self.kinds)]

    def walk(self) -> Walk:
        kinds = numbered("w", self.kinds)
        plain = uniform(kinds)
        marked, after = None, ""
        for place in range(self.length):
            part = 1 / (self.length - 1 - place) if marked is None and place < self.length - 1 else 0.0
            chances = dict.fromkeys(kinds, (1 - part) / self.kinds) if part < 1 else {}
            word = yield Turn(chances | {MARK: part} if part else plain)
            if word == MARK:
                marked = place
            elif marked == place - 1:
                after = word
        yield Turn({MARK: 1.0})
        assert marked is not None
        yield Turn({after: 1.0}, marked + 1)
