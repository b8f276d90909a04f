"""Words: text split at single spaces, with the end of a line as a word of its own, `<unk>` for the rest, and `<eos>`.

This is the form of WikiText and of the built-in worlds: punctuation stands apart, so no rule of any language is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from regard.data.tokenizer.tokenizer import Tokenizer, utf8
from regard.data.tokenizer.word_table import WordTable
from regard.errors import UsageError

UNKNOWN, NEWLINE = "<unk>", "\n"
MANY = 1 << 14  # bytes from which on a table is faster than a dictionary


class WordTokenizer(Tokenizer):
    """Tokens in order: `<unk>`, the end of a line if the text has more than one, the words by frequency, `<eos>`.

    spaced_lines  every token has a space before it, the end of a line too, as in WikiText (" the end . \\n");
                  otherwise lines begin and end with their words.
    """

    kind = "words"
    learns_from_sample = True

    def __init__(self, words: list[str], spaced_lines: bool, has_lines: bool = True) -> None:
        self.words = [UNKNOWN, *[NEWLINE] * has_lines, *words]
        self.has_lines = has_lines
        self.spaced_lines = spaced_lines
        self._id_of = {word: i for i, word in enumerate(self.words)}
        if len(self._id_of) < len(self.words):
            raise ValueError("words must be distinct")
        if any(not word or " " in word or "\n" in word for word in words):
            raise ValueError("a word may not be empty or hold a space or an end of line")

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None) -> WordTokenizer:
        """Every word of `texts`, or the most frequent ones that fit."""
        if vocab_size is not None and vocab_size < 4:
            raise UsageError(f"vocab_size {vocab_size} is too small: <unk>, end of line, <eos> and a word need 4")
        counts = Counter[str]()
        lines = spaced = 0
        for text in texts:
            utf8(text)
            counts.update(split(text))
            lines += text.count("\n")
            spaced += text.count(" \n")
        for special in (UNKNOWN, NEWLINE):
            del counts[special]
        words = sorted(counts, key=lambda word: (-counts[word], word))
        most = None if vocab_size is None else vocab_size - 2 - (lines > 0)
        return cls(words[:most], spaced_lines=2 * spaced > lines, has_lines=lines > 0)

    @property
    def vocab_size(self) -> int:
        return len(self.words) + 1

    @property
    def unknown_id(self) -> int | None:
        return 0

    def encode(self, text: str) -> np.ndarray:
        data = utf8(text)
        if len(data) >= MANY and 0 not in data:
            return self._table.ids(data.replace(b"\r\n", b"\n"))[0]
        id_of = self._id_of
        return np.array([id_of.get(word, 0) for word in split(text)], dtype=np.int64)

    def encode_all(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        parts = [utf8(text).replace(b"\r\n", b"\n") for text in texts]
        joined = b" ".join(parts)
        if len(joined) < MANY or 0 in joined:
            return super().encode_all(texts)
        found, begins = self._table.ids(joined)
        stops = np.cumsum([len(part) + 1 for part in parts])
        return found, np.diff(begins.searchsorted(stops), prepend=0)

    @cached_property
    def _table(self) -> WordTable:
        return WordTable(self.words, self._id_of)

    def unknown_sizes(self, text: str) -> np.ndarray:
        found, previous = [], None
        for word in split(text):
            token = self._id_of.get(word, 0)
            if token == 0:
                longer = len(utf8(word)) - len(UNKNOWN)
                found.append(0 if word == UNKNOWN else len(self.piece(0, previous)) + longer)
            previous = token
        return np.array(found, dtype=np.int64)

    def piece(self, token: int, previous: int | None) -> bytes:
        at_edge = previous is None or (self.has_lines and 1 in (token, previous))
        space = self.spaced_lines or not at_edge
        return (" " * space + self.words[token]).encode()

    def token_text(self, token: int) -> str:
        return self.words[token] if 0 <= token < len(self.words) else super().token_text(token)

    def settings(self) -> dict[str, Any]:
        words = self.words[1 + self.has_lines :]
        return {"has_lines": self.has_lines, "spaced_lines": self.spaced_lines, "words": words}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        words, spaced_lines, has_lines = settings["words"], settings["spaced_lines"], settings["has_lines"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise TypeError("words must be a list of strings")
        if not isinstance(spaced_lines, bool) or not isinstance(has_lines, bool):
            raise TypeError("spaced_lines and has_lines must be true or false")
        utf8("".join(words))
        return cls(words, spaced_lines, has_lines)


def split(text: str) -> list[str]:
    """Words and ends of lines, in order."""
    spaced = text.replace("\r\n", "\n").replace("\n", " \n ")
    return [word for word in spaced.split(" ") if word]
