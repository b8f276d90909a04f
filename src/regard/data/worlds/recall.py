"""Recall: probes of pairs of a key and its value, which must be known again.

In-context recall, plain, noisy and fuzzy, and memorisation are tasks of MAD (Poli et al. 2024), multi-query associative
recall of Arora et al. 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
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


@dataclass(frozen=True)
class Memorisation(Probe):
    """`pairs` pairs from a dictionary of `keys` entries.

    It depends on `dictionary` alone, so that training and validation parts and all seeds share it.
    """

    pairs: int = 16
    keys: int = 64
    dictionary: int = 0

    name: ClassVar[str] = "memorisation"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.pairs > 0 and self.keys > 1, "pairs of at least 1 and keys of at least 2")

    @property
    def vocabulary(self) -> list[str]:
        return [*numbered("k", self.keys), *numbered("v", self.keys)]

    def walk(self) -> Walk:
        random = Random(self.dictionary)
        values = {key: f"v{random.randrange(self.keys)}" for key in numbered("k", self.keys)}
        keys = uniform(values)
        for pair in range(self.pairs):
            key = yield Turn(keys)
            yield Turn({values[key]: 1.0}, 2 * pair)
