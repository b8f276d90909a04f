"""DataKind: what a task reads, by which its data is known, and what is understood of it. Nothing here needs torch.

A task is its own kind of data: `Task` and `ExampleTask` are kinds. The built-in kinds (regard/tasks/kinds.py) stand by
themselves, so that data can be looked at in less time than it takes to import what learns from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from regard.data.account import Account
from regard.data.example import Examples, column
from regard.data.kind import Head
from regard.data.settings import BY_HASH, DataSettings
from regard.data.source import shown
from regard.data.split import fold, overlap, rule, split_examples
from regard.data.worlds import PREFIX, world_of

E = TypeVar("E")
EVERYWHERE = frozenset({"path", "task", "valid", "test", "format", "delimiter", "header", "encoding"})
LAST = "tail:0.1"  # what is held out of examples in time where nobody says
MOST_COUNTED = 200_000  # examples that a survey deals out one by one


class DataKind(ABC):
    """Base of the kinds. What one declares:

    name            as in `--task`.
    used            data settings that mean something to it.
    same_data_as    the task whose data it reads too; a model of this one then says that it is meant.
    two_files       its data may lie in two files.
    turn            when it is asked whether it recognises data: those of a lower one are asked before.
    takes_anything  its data is whatever no other recognises.
    by_time         its examples come one after the other in time, so that a test must come last.
    """

    name: ClassVar[str]
    used: ClassVar[frozenset[str]]
    same_data_as: ClassVar[str | None] = None
    two_files: ClassVar[bool] = False
    turn: ClassVar[int] = 9
    takes_anything: ClassVar[bool] = False
    by_time: ClassVar[bool] = False

    def recognises(self, head: Head) -> bool:
        """Whether data that looks like this is of the kind."""
        return False

    def survey(self, settings: DataSettings, seed: int) -> Account:
        """What is understood of the data of a run, which is read as for training and not learnt from."""
        return Account(task=self.name, data=settings.path)

    def refuse_unused(self, settings: DataSettings) -> None:
        settings.refuse_unused(self.name, self.used | EVERYWHERE)


class ExampleKind(DataKind):
    """Data that comes in examples, each an input and its target."""

    @abstractmethod
    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Any]:
        """All of another file, or the held-out part of a world."""

    @abstractmethod
    def keys(self, examples: Sequence[Any]) -> Iterable[str]:
        """What each example shares with its duplicates and with nothing else: its input."""

    def survey(self, settings: DataSettings, seed: int) -> Account:
        """What is understood of the examples of a run; of very many, how many are held out is estimated."""
        self.refuse_unused(settings)
        found = self.examples(settings.path, settings, seed)
        told = getattr(found, "account", None) or Account(read=len(found), unit="examples")
        told = replace(told, task=self.name, data=settings.path)
        if settings.path.startswith(PREFIX):
            return replace(told, form="built-in data")
        fraction = rule(settings.valid)
        if fraction is not None and len(found) > MOST_COUNTED:
            held = round(len(found) * fraction[1])
            counts: dict[str, Any] = {"train": len(found) - held, "valid": held, "is_about": True}
        else:
            train, valid, _ = self.held_out(found, settings.valid, lambda path: self.examples(path, settings, seed))
            counts = {"train": len(train), "valid": len(valid)}
        test = round(counts["valid"] * settings.test)
        counts |= {"valid": counts["valid"] - test, "test": test, "is_about": "is_about" in counts or bool(test)}
        return replace(told, held_out_by=self.held_out_by(settings), **counts)

    def held_out_by(self, settings: DataSettings) -> str:
        """How examples are held out, for people; a world makes its own."""
        usual = LAST if self.by_time and settings.valid == BY_HASH else settings.valid
        return "" if settings.path.startswith(PREFIX) else usual

    def held_out(
        self, found: Sequence[E], valid: str, read: Callable[[str], Sequence[E]]
    ) -> tuple[Sequence[E], Sequence[E], tuple[str, ...]]:
        """Examples to train on, those held out by the rule `valid` or read from that file, and what is to be said."""
        if rule(valid) is not None or fold(valid) is not None:
            told = getattr(found, "account", None)
            unit = f"{told.unit} in {shown(told.data)}" if told is not None else "examples"
            return *split_examples(found, valid, self.keys(found), unit), ()
        other = read(valid)
        common = overlap(self.keys(found), self.keys(other))
        note = f"{shown(valid)}: {common:,} of {len(other):,} inputs are also in the training part"
        return found, other, (note,) if common else ()


class WholeTextKind(ExampleKind):
    """Tables of whole texts, of each of which one thing is told."""

    @abstractmethod
    def read(self, data: str, settings: DataSettings) -> Examples[Any]:
        """The examples of a table, each with a field `text`."""

    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Any]:
        if data.startswith(PREFIX):
            return world_of(data, self.name, seed).examples("valid")
        return self.read(data, settings)

    def keys(self, examples: Sequence[Any]) -> Iterable[str]:
        return column(examples, "text")
