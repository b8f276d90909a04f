"""Characters: one token for each character of the training text, one for all others, and `<eos>`.

What the one for all others stands for is not lost where texts are measured: it costs its own probability and the choice
of one out of all characters that have no token, each as likely, so that bits per byte are those of a true code.

Bytes: 256 tokens for the bytes of UTF-8, and `<eos>`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from regard.data.tokenizer.tokenizer import Tokenizer, code_points, utf8
from regard.errors import UsageError

UNKNOWN = "<unk>"
ALL_CHARACTERS = 0x110000 - 0x800  # of Unicode, surrogates aside


class CharacterTokenizer(Tokenizer):
    """Tokens in order: the known characters by code point, `<unk>`, `<eos>`.

    A character outside the list is read as `<unk>`, and written as U+FFFD.
    spelled  in runs from before there was `<unk>`: 256 bytes in its place, as which such characters are written.
    """

    kind = "chars"
    sees_words = False
    works_alone = True

    def __init__(self, characters: str, spelled: bool = False) -> None:
        if list(characters) != sorted(set(characters)):
            raise ValueError("characters must be distinct and sorted")
        self.characters, self.spelled = characters, spelled
        points = code_points(characters)
        # One entry more than the largest known code point: everything above it is unknown alike.
        self._table = np.full(int(points.max(initial=0)) + 2, -1, dtype=np.int64)
        self._table[points] = np.arange(len(points))

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None) -> CharacterTokenizer:
        """Every character of `texts`, or the most frequent ones that fit."""
        if vocab_size is not None and vocab_size < 3:
            raise UsageError(f"vocab_size {vocab_size} is too small: <unk>, <eos> and a character need 3")
        counts = _counts(texts)
        points = np.flatnonzero(counts)
        frequent = points[np.argsort(-counts[points], kind="stable")]
        return cls.of(frequent if vocab_size is None else frequent[: vocab_size - 2])

    @classmethod
    def of_few(cls, texts: Iterable[str], most: int) -> Self | None:
        """Every character of `texts`, or nothing when they are more than so many."""
        points = np.flatnonzero(_counts(texts, most))
        return cls.of(points) if len(points) <= most else None

    @classmethod
    def of(cls, points: np.ndarray) -> Self:
        """Of characters by their numbers, in any order."""
        return cls("".join(map(chr, np.sort(points).tolist())))

    @property
    def vocab_size(self) -> int:
        return len(self.characters) + (257 if self.spelled else 2)

    @property
    def unknown_id(self) -> int | None:
        return None if self.spelled else len(self.characters)

    def unknown_sizes(self, text: str) -> np.ndarray:
        if self.spelled:
            return super().unknown_sizes(text)
        points = code_points(text)
        return _widths(points[self._table[np.minimum(points, len(self._table) - 1)] < 0])

    def spelling(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), math.log(ALL_CHARACTERS - len(self.characters)))

    def encode(self, text: str) -> np.ndarray:
        points = code_points(text)
        ids = self._table[np.minimum(points, len(self._table) - 1)]
        unknown = ids < 0
        if self.spelled:
            return self._with_bytes(points, ids, unknown) if unknown.any() else ids
        return np.where(unknown, len(self.characters), ids)

    def encode_all(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        if self.spelled:
            return super().encode_all(texts)
        return self.encode("".join(texts)), np.fromiter(map(len, texts), np.int64, len(texts))

    def piece(self, token: int, previous: int | None) -> bytes:
        return self._piece_of[token]

    def token_text(self, token: int) -> str:
        return UNKNOWN if token == self.unknown_id else super().token_text(token)

    def settings(self) -> dict[str, Any]:
        return {"characters": self.characters} | ({} if self.spelled else {"others": UNKNOWN})

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        others = settings.get("others")
        if others not in (None, UNKNOWN):
            raise ValueError(f"others is {UNKNOWN} where there is one token for them")
        return cls(settings["characters"], spelled=others is None)

    @cached_property
    def _piece_of(self) -> list[bytes]:
        others = [bytes((byte,)) for byte in range(256)] if self.spelled else ["\ufffd".encode()]
        return [character.encode() for character in self.characters] + others

    def _with_bytes(self, points: np.ndarray, ids: np.ndarray, unknown: np.ndarray) -> np.ndarray:
        """`ids` with each unknown character widened to the one to four tokens of its bytes."""
        widths = np.ones(len(ids), dtype=np.int64)
        widths[unknown] = _widths(points[unknown])
        ends = np.cumsum(widths)
        result = np.empty(ends[-1], dtype=np.int64)
        is_byte = np.ones(len(result), dtype=bool)
        is_byte[ends[~unknown] - 1] = False
        result[~is_byte] = ids[~unknown]
        spelled = utf8(points[unknown].tobytes().decode("utf-32-le"))
        result[is_byte] = np.frombuffer(spelled, dtype=np.uint8).astype(np.int64) + len(self.characters)
        return result


def _widths(points: np.ndarray) -> np.ndarray:
    """Bytes of characters in UTF-8."""
    return 1 + np.searchsorted([0x80, 0x800, 0x10000], points, side="right")


def _counts(texts: Iterable[str], most: int | None = None) -> np.ndarray:
    """How often each character occurs, by its number; not read to the end once there are more than `most`."""
    counts = np.zeros(0, dtype=np.int64)
    for batch in _joined(texts):
        found = np.bincount(code_points(batch))
        counts, found = (found, counts) if len(found) > len(counts) else (counts, found)
        counts[: len(found)] += found
        if most is not None and np.count_nonzero(counts) > most:
            break
    return counts


def _joined(texts: Iterable[str]) -> Iterator[str]:
    """The same characters in fewer, longer strings: counting has a cost for each string."""
    waiting: list[str] = []
    size = 0
    for text in texts:
        utf8(text)
        waiting.append(text)
        size += len(text)
        if size > 1 << 20:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)


class ByteTokenizer(Tokenizer):
    """Token i is byte i."""

    kind = "bytes"
    sees_words = False
    works_alone = True

    @property
    def vocab_size(self) -> int:
        return 257

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(utf8(text), dtype=np.uint8).astype(np.int64)

    def encode_all(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        parts = list(map(utf8, texts))
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        # A byte each: whoever keeps them brings them to the width that they are kept in.
        return np.frombuffer(b"".join(parts), dtype=np.uint8), sizes

    def piece(self, token: int, previous: int | None) -> bytes:
        return bytes((token,))

    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:  # noqa: ARG003
        return cls()
