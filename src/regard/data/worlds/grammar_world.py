"""GrammarWorld: a world of text that a grammar draws and reads."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import ClassVar

from regard.data.worlds.base import World
from regard.data.worlds.grammar import END, GrammarReader, Node, lexicon, sample


@dataclass(frozen=True)
class GrammarWorld(World):
    """Base of the worlds of a grammar: a subclass writes it down as `root`."""

    tokens: ClassVar[str] = "words"

    @abstractmethod
    def root(self) -> Node:
        """The grammar of a document."""

    @cached_property
    def grammar(self) -> Node:
        return self.root()

    @property
    def vocabulary(self) -> list[str]:
        return lexicon(self.grammar)

    def document(self, seed: int) -> str:
        return " ".join(sample(self.grammar, Random(seed))[0])

    def next_distribution(self, prefix_tokens: list[str]) -> dict[str, float]:
        return self._read(prefix_tokens).distribution()

    def token_probabilities(self, document: str) -> list[float]:
        reader = GrammarReader(self.grammar)
        return [reader.read(token) for token in [*self.split(document), END]]

    def recall_points(self, document: str) -> list[tuple[int, int]]:
        return self._read(self.split(document)).recalls()

    def _read(self, tokens: list[str]) -> GrammarReader:
        reader = GrammarReader(self.grammar)
        for token in tokens:
            reader.read(token)
        return reader
