"""Spelling: tokens as they are told, with the bytes that each adds to the text that it stands in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.decoding.row_rules import Likeliest

if TYPE_CHECKING:
    from regard.data.tokenizer import Tokenizer

LEAST = -9999.0  # the logarithm of a probability of 0, which JSON has no number for


class Spelling:
    """Of one text. before: the tokens that stand before those that are told, on which their bytes depend."""

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int] = ()) -> None:
        self.tokenizer = tokenizer
        self.previous = next((token for token in reversed(before) if not tokenizer.is_special(token)), None)

    def told(self, token: int, log_prob: float | None, likeliest: Likeliest) -> list[Any]:
        """The next token: number, text, log p, the likeliest ones of its place, and its bytes, a character for each."""
        likely = [[one, self._text(one), max(value, LEAST), self._bytes(one)] for one, value in likeliest]
        value = None if log_prob is None else max(log_prob, LEAST)
        told = [token, self._text(token), value, likely, self._bytes(token)]
        if not self.tokenizer.is_special(token):
            self.previous = token
        return told

    def _text(self, token: int) -> str:
        return self.tokenizer.token_text(token)

    def _bytes(self, token: int) -> str:
        """As JSON can hold them: a character for each."""
        return "" if self.tokenizer.is_special(token) else self.tokenizer.piece(token, self.previous).decode("latin-1")
