"""Probe: a world of text that asks for one skill, such as recalling or counting, and for nothing else.

A probe is written as a walk through a document: it offers the chances of the next token, is told which it was, and goes
on. What is drawn and what is known are then the same by construction.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from regard.data.worlds.base import World
from regard.data.worlds.grammar import END
from regard.errors import DataError, UsageError


class Turn(NamedTuple):
    """The chances of the next token. since: the place of the token that determines it, where it is asked for."""

    chances: dict[str, float]
    since: int | None = None


Walk = Generator[Turn, str, None]


@dataclass(frozen=True)
class Probe(World):
    """Base of the probes: a subclass writes `walk` and `vocabulary`. After the walk comes the end of the document."""

    tokens: ClassVar[str] = "words"

    @abstractmethod
    def walk(self) -> Walk:
        """The turns of a document, each told the token that was taken."""

    def document(self, seed: int) -> str:
        random = Random(seed)
        words: list[str] = []
        walk = self.walk()
        turn = next(walk)
        try:
            while True:
                chosen = random.choices(list(turn.chances), list(turn.chances.values()))[0]
                words.append(chosen)
                turn = walk.send(chosen)
        except StopIteration:
            return " ".join(words)

    def next_distribution(self, prefix_tokens: list[str]) -> dict[str, float]:
        turns = self._turns(prefix_tokens)
        return turns[-1].chances

    def token_probabilities(self, document: str) -> list[float]:
        words = self.split(document)
        turns = self._turns(words)
        return [turn.chances.get(word, 0.0) for turn, word in zip(turns, [*words, END], strict=True)]

    def recall_points(self, document: str) -> list[tuple[int, int]]:
        turns = self._turns(self.split(document))
        return [(place, place - turn.since) for place, turn in enumerate(turns) if turn.since is not None]

    def _turns(self, words: list[str]) -> list[Turn]:
        """The turn before every word, and the one after the last."""
        walk = self.walk()
        turns = [next(walk)]
        for place, word in enumerate(words):
            if turns[-1].chances.get(word, 0.0) == 0.0 or word == END:
                told = " ".join(words[: place + 1])
                raise DataError(f"{told[-40:]!r} does not begin a document of {self.spec}")
            try:
                turns.append(walk.send(word))
            except StopIteration:
                turns.append(Turn({END: 1.0}))
        return turns

    def require(self, condition: bool, words: str) -> None:
        if not condition:
            raise UsageError(f"world:{self.name} needs {words}")


def uniform(tokens: Iterable[str]) -> dict[str, float]:
    """All equally likely.

    >>> uniform("ab")
    {'a': 0.5, 'b': 0.5}
    """
    found = list(tokens)
    return dict.fromkeys(found, 1 / len(found))


def numbered(letter: str, count: int) -> list[str]:
    """
    >>> numbered("k", 3)
    ['k0', 'k1', 'k2']
    """
    return [f"{letter}{number}" for number in range(count)]
