"""Pairs of a key and its value of two words each: where both words of a key come again its value is known.

Fuzzy in-context recall of MAD (Poli et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Turn, Walk, numbered, uniform
from regard.data.worlds.recall import Recall


@dataclass(frozen=True)
class FuzzyRecall(Recall):
    """The same with keys and values of two words each: a key is known by both of its words together."""

    keys: int = 4

    name: ClassVar[str] = "fuzzy_recall"

    def walk(self) -> Walk:
        keys, values = uniform(numbered("k", self.keys)), uniform(numbered("v", self.keys))
        told: dict[tuple[str, str], tuple[tuple[str, str], int]] = {}
        for pair in range(self.pairs):
            first = yield Turn(keys)
            second = yield Turn(keys)
            key, place = (first, second), 4 * pair + 2
            if key in told:
                value, before = told[key]
                yield Turn({value[0]: 1.0}, before)
                yield Turn({value[1]: 1.0}, before + 1)
            else:
                one = yield Turn(values)
                two = yield Turn(values)
                value = (one, two)
            told[key] = (value, place)
