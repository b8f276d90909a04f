"""Pairs of a key and its value, one after the other: where a key comes again its value is known.

In-context recall of MAD (Poli et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, numbered, uniform


@dataclass(frozen=True)
class Recall(Probe):
    """`pairs` pairs of one of `keys` keys and one of as many values, the same value for a key all along a document."""

    pairs: int = 16
    keys: int = 8

    name: ClassVar[str] = "recall"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.pairs > 0 and self.keys > 1, "pairs of at least 1 and keys of at least 2")

    @property
    def vocabulary(self) -> list[str]:
        return [*numbered("k", self.keys), *numbered("v", self.keys)]

    def walk(self) -> Walk:
        keys, values = uniform(numbered("k", self.keys)), uniform(numbered("v", self.keys))
        told: dict[str, tuple[str, int]] = {}
        for pair in range(self.pairs):
            key = yield Turn(keys)
            place = 2 * pair + 1
            if key in told:
                value, before = told[key]
                yield Turn({value: 1.0}, before)
            else:
                value = yield Turn(values)
            told[key] = (value, place)
