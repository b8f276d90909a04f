"""Probe: a world of text that asks for one skill, such as recalling or counting, and for nothing else.

A probe is written as a walk through a document: it offers the chances of the next token, is told which it was, and goes
on. What is drawn and what is known are then the same by construction.

Counting: probes of random letters, at the end of which is asked how many of a kind there were.

Copying: probes of words that must be said again after a mark, all of them, some, or one.

Selective copying (Gu and Dao 2023, 4.1.1, and MAD, Poli et al. 2024), compression (MAD) as text, and induction heads
(Gu and Dao 2023, 4.1.2).
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

NOISE, MARK = ".", "!"


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


@dataclass(frozen=True)
class Parity(Probe):
    """`length` random bits, a mark, and the answer. Every bit decides, so that the first is as far back as it goes."""

    length: int = 16

    name: ClassVar[str] = "parity"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.length > 0, "a length of at least 1")

    @property
    def vocabulary(self) -> list[str]:
        return ["0", "1", "?", "even", "odd"]

    def walk(self) -> Walk:
        bits = uniform("01")
        ones = 0
        for _ in range(self.length):
            ones += (yield Turn(bits)) == "1"
        yield Turn({"?": 1.0})
        yield Turn({"odd" if ones % 2 else "even": 1.0}, 0)


@dataclass(frozen=True)
class Majority(Probe):
    """`length` random letters, a and b, a mark, and the one that came more often."""

    length: int = 25

    name: ClassVar[str] = "majority"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.length > 0 and self.length % 2 == 1, "an odd length")

    @property
    def vocabulary(self) -> list[str]:
        return ["a", "b", "?"]

    def walk(self) -> Walk:
        letters = uniform("ab")
        told = []
        for _ in range(self.length):
            told.append((yield Turn(letters)))
        yield Turn({"?": 1.0})
        yield Turn({max("ab", key=told.count): 1.0}, 0)


@dataclass(frozen=True)
class SelectiveCopy(Probe):
    """`words` words of `kinds` kinds at random places among `length`, noise elsewhere; a mark; the words again.

    All choices of places are equally likely.
    """

    length: int = 48
    words: int = 8
    kinds: int = 8

    name: ClassVar[str] = "selective_copy"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            1 <= self.words <= self.length and self.kinds > 1, "words from 1 to the length and 2 kinds or more"
        )

    @property
    def vocabulary(self) -> list[str]:
        return [NOISE, MARK, *numbered("w", self.kinds)]

    def walk(self) -> Walk:
        kinds = numbered("w", self.kinds)
        told: list[tuple[str, int]] = []
        for place in range(self.length):
            # Of the places left, as many hold a word as words are left.
            part = (self.words - len(told)) / (self.length - place)
            chances = dict.fromkeys(kinds, part / self.kinds) if part else {}
            word = yield Turn(chances | ({NOISE: 1 - part} if part < 1 else {}))
            if word != NOISE:
                told.append((word, place))
        yield Turn({MARK: 1.0})
        for word, place in told:
            yield Turn({word: 1.0}, place)


@dataclass(frozen=True)
class Compression(Probe):
    """`length` random words of `kinds` kinds, a mark, and all of them again."""

    length: int = 12
    kinds: int = 16

    name: ClassVar[str] = "compression"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.length > 0 and self.kinds > 1, "a length of at least 1 and 2 kinds or more")

    @property
    def vocabulary(self) -> list[str]:
        return [MARK, *numbered("w", self.kinds)]

    def walk(self) -> Walk:
        kinds = uniform(numbered("w", self.kinds))
        told: list[str] = []
        for _ in range(self.length):
            told.append((yield Turn(kinds)))
        yield Turn({MARK: 1.0})
        for place, word in enumerate(told):
            yield Turn({word: 1.0}, place)


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
