"""World: a small generated language whose best possible score is known exactly, and what all worlds share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import ClassVar, Generic

from regard.data.example import E
from regard.data.order import mixed
from regard.errors import UsageError

SPLITS = ("train", "valid")


@dataclass(frozen=True)
class Generated(ABC):
    """What all worlds share. The fields are the settings of `world:NAME?train=5000&seed=3`, all whole numbers.

    name    under which it is found.
    task    what its examples are for, such as text, pairs or labelled.
    tokens  the tokenizer it is made for, "words" or "chars".
    """

    train: int = 20_000
    valid: int = 1_000
    seed: int = 0

    name: ClassVar[str]
    task: ClassVar[str]
    tokens: ClassVar[str]

    def __post_init__(self) -> None:
        for split in SPLITS:
            if getattr(self, split) < 1:
                raise UsageError(f"world:{self.name} needs {split} of at least 1, found {getattr(self, split)}")

    @property
    def spec(self) -> str:
        """The full address of this world with all its settings."""
        return f"world:{self.name}?" + "&".join(f"{key}={value}" for key, value in sorted(asdict(self).items()))

    def seeds(self, split: str, count: int | None = None, seed: int | None = None) -> list[int]:
        """The 64-bit seeds of items 0 .. count-1 of a split: each a pure function of (seed, split, index)."""
        n = getattr(self, split) if count is None else count
        seed = self.seed if seed is None else seed
        return [mixed(seed, SPLITS.index(split), index) for index in range(n)]


@dataclass(frozen=True)
class World(Generated):
    """Base of the worlds of text, whose next token has a known distribution."""

    task: ClassVar[str] = "text"

    @abstractmethod
    def document(self, seed: int) -> str:
        """The document that a 64-bit seed stands for."""

    @abstractmethod
    def next_distribution(self, prefix_tokens: list[str]) -> dict[str, float]:
        """The exact chances of the next token after the first tokens of a document, `<eos>` included."""

    @abstractmethod
    def token_probabilities(self, document: str) -> list[float]:
        """The exact chance of every token of a document given those before it, its `<eos>` last."""

    @abstractmethod
    def recall_points(self, document: str) -> list[tuple[int, int]]:
        """(index, distance) of each token that is determined by a fact told `distance` tokens before."""

    @property
    @abstractmethod
    def vocabulary(self) -> list[str]:
        """Every token that can occur, `<eos>` aside."""

    def split(self, document: str) -> list[str]:
        """The tokens of a document."""
        return document.split(" ") if self.tokens == "words" else list(document)

    def documents(self, split: str, count: int | None = None, seed: int | None = None) -> list[str]:
        """Documents 0 .. count-1 of a split: each a pure function of (seed, split, index)."""
        return [self.document(number) for number in self.seeds(split, count, seed)]

    def optimal_loss(self, documents: Iterable[str]) -> float:
        """Nats per token, `<eos>` included, of a model that knows the world: no model is better in expectation."""
        total = 0.0
        n_tokens = 0
        for document in documents:
            probabilities = self.token_probabilities(document)
            total -= math.fsum(map(math.log, probabilities))
            n_tokens += len(probabilities)
        return total / n_tokens


@dataclass(frozen=True)
class ExampleWorld(Generated, Generic[E]):
    """Base of the worlds of examples.

    best  what the best possible model scores, such as {"exact_match": 1.0}.
    """

    best: ClassVar[dict[str, float]]

    @abstractmethod
    def example(self, seed: int) -> E:
        """The example that a 64-bit seed stands for."""

    def examples(self, split: str, count: int | None = None, seed: int | None = None) -> list[E]:
        """Examples 0 .. count-1 of a split: each a pure function of (seed, split, index)."""
        return [self.example(number) for number in self.seeds(split, count, seed)]
