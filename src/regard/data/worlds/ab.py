"""Strings of As and Bs and the question whether there was a B: the smallest task that needs to look back.

A document is `length` letters and then the answer: A when all of them are A, otherwise B. Letters are independent, and
B is so rare that half of the strings have none; at equal chances almost every answer to a long string would be B.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from regard.data.worlds.base import World
from regard.data.worlds.grammar import END
from regard.errors import DataError, UsageError


@dataclass(frozen=True)
class LetterStrings(World):
    """Strings of `length` letters with their answer."""

    length: int = 16

    name: ClassVar[str] = "ab"
    tokens: ClassVar[str] = "chars"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 1:
            raise UsageError(f"world:ab needs a length of at least 1, found {self.length}")

    @property
    def chance_of_b(self) -> float:
        """q with (1 - q)^length = 1/2."""
        return 1 - 0.5 ** (1 / self.length)

    @property
    def vocabulary(self) -> list[str]:
        return ["A", "B"]

    def document(self, seed: int) -> str:
        random = Random(seed)
        letters = "".join("B" if random.random() < self.chance_of_b else "A" for _ in range(self.length))
        return letters + answer(letters)

    def next_distribution(self, prefix_tokens: list[str]) -> dict[str, float]:
        text = "".join(prefix_tokens)
        letters, told = text[: self.length], text[self.length :]
        if set(text) - {"A", "B"} or told not in ("", answer(letters)):
            raise DataError(f"{text[:40]!r} does not begin a document of world:ab?length={self.length}")
        if len(letters) < self.length:
            return {"A": 1 - self.chance_of_b, "B": self.chance_of_b}
        return {END: 1.0} if told else {answer(letters): 1.0}

    def token_probabilities(self, document: str) -> list[float]:
        tokens = [*document, END]
        return [self.next_distribution(tokens[:i]).get(token, 0.0) for i, token in enumerate(tokens)]

    def recall_points(self, document: str) -> list[tuple[int, int]]:
        """The answer, recalled from the last B; without a B, from the first letter, since all had to be seen."""
        last = document.rfind("B", 0, self.length)
        return [(self.length, self.length - max(last, 0))]


def answer(letters: str) -> str:
    """A when there is no B, otherwise B."""
    return "B" if "B" in letters else "A"
