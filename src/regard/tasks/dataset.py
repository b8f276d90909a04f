"""Dataset: data ready for training, with what was held out of it.

TextPart: a held-out part of a text, as documents and as the tokens of all of them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import numpy as np

from regard.core.data_spec import DataSpec
from regard.data.account import Account
from regard.data.example import taken
from regard.data.rows import Rows
from regard.data.shard import TokenShard
from regard.data.tokenizer import Tokenizer
from regard.data.worlds.base import World
from regard.errors import DataError
from regard.tasks.processor import Processor
from regard.terminal.label import too_few

if TYPE_CHECKING:
    from regard.data.worlds.base import World

C = TypeVar("C", bound=Processor)
LOOKED_AT = 240  # tokens of a document that its opening is sought in


class Dataset(ABC, Generic[C]):
    """Data ready for training, whatever the task.

    name       what it was made of, for display.
    processor  in whose terms it is.
    best       the best possible scores, in a world.
    notes      what a person should be told, a line each.
    account    what was understood of the data, where its reader tells it.
    """

    name: str
    processor: C
    best: Mapping[str, float]
    notes: tuple[str, ...]
    account: Account | None

    @property
    def spec(self) -> DataSpec:
        """What a model of it must know."""
        return self.processor.spec

    @property
    def world(self) -> World | None:
        """The world of text that it was made by, which knows the chance of every token."""
        return None

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the processor and of what is trained and chosen by: what a run must find again to go on."""
        return hashlib.sha256(" ".join([self.processor.hash, *self.hashes()]).encode()).hexdigest()

    @abstractmethod
    def hashes(self) -> tuple[str, str]:
        """Of the training part and of the validation part."""

    @abstractmethod
    def part(self, name: str) -> Sequence[Any] | None:
        """What was held out: "valid", or the "test" that was set apart; None where there is none."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What it is, in plain keys: its name and how much is in each part."""

    @abstractmethod
    def judged(self) -> Sequence[Any]:
        """What scores depend on beyond `hash`."""


@dataclass(frozen=True, eq=False)
class ExampleDataset(Dataset[C]):
    """Data that comes in examples.

    examples  the held-out examples as people write them, in the order of the rows `valid`.
    kept      numbers of the rows of `valid` that training looks at; None for all.
    test      further held-out examples, which neither training nor choosing sees.
    training  the examples of `train` as people write them, where a model may ask for them.
    """

    name: str
    processor: C
    train: Rows
    valid: Rows
    examples: Sequence[Any]
    best: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kept: np.ndarray | None = None
    test: Sequence[Any] = ()
    training: Sequence[Any] = ()
    account: Account | None = None

    def set_apart(self, chosen: np.ndarray, advice: str = "give more examples") -> Self:
        """The same with the `chosen` ones of the held-out examples taken away as a test; advice: where none can be."""
        if chosen.all() or not chosen.any():
            few = too_few(len(chosen), "held-out example")
            raise DataError(f"{self.name}: {few} to set a test part apart; {advice}")
        kept = np.flatnonzero(~chosen)
        test = taken(self.examples, np.flatnonzero(chosen))
        return replace(self, examples=taken(self.examples, kept), kept=kept, test=test)

    def counted(self, account: Account) -> Self:
        """The same with what was understood of its data, and how much of it is in each part."""
        parts = {"train": len(self.train.sizes), "valid": len(self.examples), "test": len(self.test)}
        return replace(self, account=replace(account, read=account.read or sum(parts.values()), **parts))

    def hashes(self) -> tuple[str, str]:
        return self.train.hash, self.valid.hash

    def part(self, name: str) -> Sequence[Any] | None:
        return (self.test or None) if name == "test" else self.examples

    def about(self) -> dict[str, Any]:
        sizes = {"train": len(self.train.sizes), "valid": len(self.examples), "test": len(self.test)}
        return {"name": self.name, **sizes}

    def judged(self) -> Sequence[Any]:
        # Answers are judged as people write them, and two words may be one to the model.
        return self.examples, self.test, *([self.training] if self.training else [])


@dataclass(frozen=True, eq=False)
class TextPart(Sequence[str]):
    """Documents in the tokens of a run. world: that they come from. limit: tokens of it that count; None for all."""

    shard: TokenShard
    tokenizer: Tokenizer
    world: World | None = None
    limit: int | None = None

    def __len__(self) -> int:
        return self.shard.n_documents

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return self.tokenizer.decode(self.shard.document(range(len(self))[index]))

    def opening(self, number: int, tokens: int = LOOKED_AT) -> str:
        """The first tokens of a document."""
        return self.tokenizer.decode(self.shard.document(number)[:tokens])


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return next((line for line in text.split("\n") if line.strip()), "")
