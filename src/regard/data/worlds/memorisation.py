"""Pairs of a dictionary that is the same in all documents: what must be learnt by heart.

Memorisation of MAD (Poli et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, numbered, uniform


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
