"""Recall: probes of pairs of a key and its value, which must be known again.

In-context recall, plain, noisy and fuzzy, and memorisation are tasks of MAD (Poli et al. 2024), multi-query associative
recall of Arora et al. 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, numbered, uniform

NOISE = "n"


@dataclass(frozen=True)
class _Pairs(Probe):
    """`pairs` pairs of one of `keys` keys and one of as many values."""

    pairs: int = 16
    keys: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()

    def _check(self) -> None:
        self.require(self.pairs > 0 and self.keys > 1, "pairs of at least 1 and keys of at least 2")

    @property
    def vocabulary(self) -> list[str]:
        return [*numbered("k", self.keys), *numbered("v", self.keys)]


@dataclass(frozen=True)
class Recall(_Pairs):
    """The same value for a key all along a document."""

    name: ClassVar[str] = "recall"

    def walk(self) -> Walk:
        first, values = self._first(), uniform(numbered("v", self.keys))
        told: dict[str, tuple[str, int]] = {}
        place = -1
        for _ in range(self.pairs):
            key = NOISE
            while key.startswith(NOISE):
                key = yield Turn(first)
                place += 1
            place += 1
            if key in told:
                value, before = told[key]
                yield Turn({value: 1.0}, before)
            else:
                value = yield Turn(values)
            told[key] = (value, place)

    def _first(self) -> dict[str, float]:
        """What a pair may begin with."""
        return uniform(numbered("k", self.keys))


@dataclass(frozen=True)
class NoisyRecall(Recall):
    """The same with words between pairs that mean nothing: before each pair with a chance of `noise` per cent, again
    and again."""

    noise: int = 40

    name: ClassVar[str] = "noisy_recall"

    def _check(self) -> None:
        super()._check()
        self.require(0 <= self.noise < 100, "noise from 0 to 99")

    @property
    def vocabulary(self) -> list[str]:
        return [*super().vocabulary, *numbered(NOISE, self.keys)]

    def _first(self) -> dict[str, float]:
        part = self.noise / 100
        keys = dict.fromkeys(numbered("k", self.keys), (1 - part) / self.keys)
        return keys | dict.fromkeys(numbered(NOISE, self.keys), part / self.keys)


@dataclass(frozen=True)
class FuzzyRecall(_Pairs):
    """Keys and values of two words each: a key is known by both of its words together."""

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
class MultiRecall(_Pairs):
    """`pairs` different keys of `keys`, each with one of as many values; then every one of them is asked for."""

    pairs: int = 8
    keys: int = 32

    name: ClassVar[str] = "multi_recall"

    def _check(self) -> None:
        self.require(1 <= self.pairs <= self.keys, f"pairs from 1 to the {self.keys} keys")

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
class Memorisation(_Pairs):
    """`pairs` pairs from a dictionary of `keys` entries.

    It depends on `dictionary` alone, so that training and validation parts and all seeds share it.
    """

    keys: int = 64
    dictionary: int = 0

    name: ClassVar[str] = "memorisation"

    def walk(self) -> Walk:
        random = Random(self.dictionary)
        values = {key: f"v{random.randrange(self.keys)}" for key in numbered("k", self.keys)}
        keys = uniform(values)
        for pair in range(self.pairs):
            key = yield Turn(keys)
            yield Turn({values[key]: 1.0}, 2 * pair)
