"""Examples: what a task learns from, one record each, with the place it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, overload

import numpy as np

from regard.data.account import Account
from regard.data.packed import Chosen, Column


@dataclass(frozen=True)
class Pair:
    """A text and the text to be made of it (N-M).

    links  the gold alignment, where there is one: (index in source, index in target) of words between single spaces.
    where  such as "train.tsv, line 3", for messages.
    """

    source: str
    target: str
    links: tuple[tuple[int, int], ...] | None = None
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Labelled:
    """A text and its class (N-1)."""

    text: str
    label: str
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Rated:
    """A text and its number (N-1)."""

    text: str
    number: float
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Several:
    """A text and its labels, of which there may be none (N-1)."""

    text: str
    labels: tuple[str, ...]
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Tagged:
    """Words and one tag for each (N-N)."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    where: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if len(self.words) != len(self.tags):
            raise ValueError(f"{len(self.words)} words cannot have {len(self.tags)} tags")


@dataclass(frozen=True, eq=False)
class Captioned:
    """A picture, (height, width, 3) of unsigned bytes, and the text that says what it shows (1-N).

    file  where the picture can be found: its own file, the array that holds it, or world:NAME.
    """

    picture: np.ndarray
    text: str
    category: str = ""
    where: str = field(default="", compare=False)
    file: str = field(default="", compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Captioned) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[tuple[int, ...], bytes, str, str]:
        return self.picture.shape, self.picture.tobytes(), self.text, self.category


Example = Pair | Labelled | Rated | Several | Tagged | Captioned
T = TypeVar("T")
R = TypeVar("R")
X = TypeVar("X")
E = TypeVar("E")


class Examples(Sequence[E]):
    """The examples of a file, kept by column; each is made when it is asked for.

    kind      what an example is; columns hold its fields, by their names.
    rows      which rows of the columns are meant, in order; None for all.
    note      what the reader had to decide or wants known, in one line; empty when there is nothing to say.
    settings  the arguments with which the reader makes the same choices for another file.
    account   what was understood of the file.
    """

    def __init__(
        self,
        kind: type[E],
        columns: Mapping[str, Column[Any]],
        *,
        rows: np.ndarray | None = None,
        note: str = "",
        settings: dict[str, str] | None = None,
        account: Account | None = None,
    ) -> None:
        self.kind, self.columns = kind, columns
        self.rows = np.arange(len(next(iter(columns.values())))) if rows is None else rows
        self.note, self.settings, self.account = note, settings or {}, account

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> E: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[E]: ...
    def __getitem__(self, index: int | slice) -> E | Sequence[E]:
        if isinstance(index, slice):
            return self.taken(np.arange(len(self))[index])
        row = int(self.rows[index])
        return self.kind(**{name: column.value(row) for name, column in self.columns.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # equals a list, which has none

    def column(self, name: str) -> Column[Any]:
        """One field of every example."""
        return Chosen(self.columns[name], self.rows)

    def taken(self, numbers: np.ndarray) -> Examples[E]:
        """Those with these numbers, as a view of the same columns."""
        told: dict[str, Any] = {"note": self.note, "settings": self.settings, "account": self.account}
        return Examples(self.kind, self.columns, rows=self.rows[numbers], **told)


@dataclass(frozen=True, eq=False)
class ExampleData(Generic[R, X]):
    """The training part of a task of examples, as a model that is fitted at once meets it.

    rows      as numbers, in the terms of the run's processor.
    examples  as people write them, in the same order; none where a task does not keep them.
    """

    rows: R
    examples: Sequence[X]

    def column(self, name: str) -> Sequence[Any]:
        """One field of every example."""
        return column(self.examples, name)


def column(examples: Sequence[Any], name: str) -> Sequence[Any]:
    """One field of every example, without making the examples of a file for it."""
    return examples.column(name) if isinstance(examples, Examples) else [getattr(one, name) for one in examples]


def account_of(examples: Sequence[Any], **facts: int) -> Account | None:
    """What the reader of examples understood, with further facts; None of examples that no file was read for."""
    account = examples.account if isinstance(examples, Examples) else None
    return None if account is None else replace(account, facts={**account.facts, **facts})


def joined(first: Sequence[T], second: Sequence[T]) -> Sequence[T]:
    """The examples of both, one after the other; of one file as a view of its columns."""
    if isinstance(first, Examples) and isinstance(second, Examples) and first.columns is second.columns:
        return Examples(first.kind, first.columns, rows=np.concatenate([first.rows, second.rows]))
    return [*first, *second]


def taken(examples: Sequence[T], numbers: np.ndarray) -> Sequence[T]:
    """The examples with these numbers."""
    return examples.taken(numbers) if isinstance(examples, Examples) else [examples[i] for i in numbers.tolist()]
