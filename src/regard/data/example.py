"""Examples: what a task learns from, one record each, with the place it was read from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np


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


Example = Pair | Labelled | Tagged | Captioned
E = TypeVar("E", Pair, Labelled, Tagged, Captioned)


class Examples(list[E]):
    """The examples of a file.

    note      what the reader had to decide or wants known, in one line; empty when there is nothing to say.
    settings  the arguments with which the reader makes the same choices for another file.
    """

    def __init__(self, items: Iterable[E] = (), note: str = "", settings: dict[str, str] | None = None) -> None:
        super().__init__(items)
        self.note = note
        self.settings = settings or {}
