"""Pairs of a key and its value with words between them that mean nothing, to be recalled all the same.

Noisy in-context recall of MAD (Poli et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Turn, Walk, numbered, uniform
from regard.data.worlds.recall import Recall


@dataclass(frozen=True)
class NoisyRecall(Recall):
    """The same with words between pairs that mean nothing: before each pair with a chance of `noise` per cent, again
    and again."""

    noise: int = 40

    name: ClassVar[str] = "noisy_recall"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(0 <= self.noise < 100, "noise from 0 to 99")

    @property
    def vocabulary(self) -> list[str]:
        return [*super().vocabulary, *numbered("n", self.keys)]

    def walk(self) -> Walk:
        values = uniform(numbered("v", self.keys))
        part = self.noise / 100
        keys = dict.fromkeys(numbered("k", self.keys), (1 - part) / self.keys)
        either = keys | dict.fromkeys(numbered("n", self.keys), part / self.keys)
        told: dict[str, tuple[str, int]] = {}
        place = -1
        for _ in range(self.pairs):
            key = "n"
            while key.startswith("n"):
                key = yield Turn(either)
                place += 1
            place += 1
            if key in told:
                value, before = told[key]
                yield Turn({value: 1.0}, before)
            else:
                value = yield Turn(values)
            told[key] = (value, place)
