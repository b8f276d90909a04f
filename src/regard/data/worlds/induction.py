"""Random words with one mark among them; at the end the mark comes again, and what followed it is asked for.

Induction heads as in Gu and Dao 2023, 4.1.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, numbered, uniform

MARK = "!"


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
