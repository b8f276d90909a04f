"""Integers: whole numbers written with whitespace between them, one token for each number of a range, and `<eos>`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from regard.data.tokenizer.tokenizer import Tokenizer
from regard.errors import DataError, UsageError

# A wider range is no vocabulary but a quantity.
WIDEST = 1 << 20
NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


class IntegerTokenizer(Tokenizer):
    """Token i is the number low + i. A number outside low .. high is refused, since it has no token to stand for it."""

    kind = "integers"

    def __init__(self, low: int, high: int) -> None:
        if not low <= high:
            raise ValueError(f"low {low} must not be above high {high}")
        if high - low >= WIDEST:
            raise ValueError(f"a range of {high - low + 1} numbers is wider than {WIDEST}")
        self.low, self.high = low, high

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None) -> IntegerTokenizer:
        """From the least number seen, or 0, to the largest; with `vocab_size`, 0 .. vocab_size - 2."""
        if vocab_size is not None:
            if not 2 <= vocab_size <= WIDEST:
                raise UsageError(f"vocab_size {vocab_size} must lie in 2 .. {WIDEST} for integers")
            return cls(0, vocab_size - 2)
        low = high = 0
        for text in texts:
            numbers = numbers_in(text)
            low, high = min([low, *numbers]), max([high, *numbers])
        if high - low >= WIDEST:
            raise DataError(f"integers from {low} to {high} are too many for a vocabulary: use tokens = chars or bytes")
        return cls(low, high)

    @property
    def vocab_size(self) -> int:
        return self.high - self.low + 2

    def encode(self, text: str) -> np.ndarray:
        numbers = numbers_in(text)
        for number in (min(numbers, default=self.low), max(numbers, default=self.low)):
            if not self.low <= number <= self.high:
                raise DataError(
                    f"the number {number} is outside {self.low} .. {self.high}, the range of the training text: "
                    f"remove it, or set vocab_size to the largest number + 2"
                )
        return np.array(numbers, dtype=np.int64) - self.low

    def piece(self, token: int, previous: int | None) -> bytes:
        return (" " * (previous is not None) + str(token + self.low)).encode()

    def settings(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        low, high = settings["low"], settings["high"]
        if type(low) is not int or type(high) is not int:
            raise TypeError("low and high must be whole numbers")
        return cls(low, high)


def numbers_in(text: str) -> list[int]:
    """The numbers of a text; the first word that is none is refused by name."""
    words = text.split()
    try:
        # Python would read 1_000 as a number.
        numbers = list(map(int, words)) if "_" not in text else None
    except ValueError:
        numbers = None
    if numbers is None:
        place, wrong = next((i, word) for i, word in enumerate(words) if not NUMBER.fullmatch(word))
        raise DataError(
            f"word {place} of the text, {wrong[:40]!r}, is no whole number of up to 18 digits: use tokens = words"
        )
    return numbers
