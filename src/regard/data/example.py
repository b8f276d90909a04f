"""Examples: what a task learns from, one record each, with the place it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    """A picture, (height, width, 3) of unsigned bytes, and the text that says what it shows (1-N)."""

    picture: np.ndarray
    text: str
    category: str = ""
    where: str = field(default="", compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Captioned) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[tuple[int, ...], bytes, str, str]:
        return self.picture.shape, self.picture.tobytes(), self.text, self.category


Example = Pair | Labelled | Tagged | Captioned
