"""Pairs of a key and its value, and then each key once more, in any order, with the question for its value.

Multi-query associative recall (Arora et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, numbered, uniform


@dataclass(frozen=True)
class MultiRecall(Probe):
    """`pairs` different keys of `keys`, each with one of as many values; then every one of them is asked for."""

    pairs: int = 8
    keys: int = 32

    name: ClassVar[str] = "multi_recall"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1 <= self.pairs <= self.keys, f"pairs from 1 to the {self.keys} keys")

    @property
    def vocabulary(self) -> list[str]:
        return [*numbered("k", self.keys), *numbered("v", self.keys)]

    def walk(self) -> Walk:
        values = uniform(numbered("v", self.keys))
        free = dict.fromkeys(numbered("k", self.keys))
        told: dict[str, tuple[str, int]] = {}
        for pair in range(self.pairs):
            key = yield Turn(uniform(free))
            del free[key]
            value = yield Turn(values)
            told[key] = (value, 2 * pair + 1)
        while told:
            key = yield Turn(uniform(told))
            value, place = told.pop(key)
            yield Turn({value: 1.0}, place)
