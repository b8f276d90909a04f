"""Characters: one token for each character of the training text, 256 bytes for all others, and `<eos>`.

Bytes: 256 tokens for the bytes of UTF-8, and `<eos>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np

from regard.data.tokenizer.tokenizer import Tokenizer, code_points, utf8
from regard.errors import UsageError


class CharacterTokenizer(Tokenizer):
    """Tokens in order: the known characters by code point, the bytes, `<eos>`.

    A character outside the list is written as the bytes of its UTF-8, so that every text can be encoded.
    """

    kind = "chars"
    sees_words = False

    def __init__(self, characters: str) -> None:
        if list(characters) != sorted(set(characters)):
            raise ValueError("characters must be distinct and sorted")
        self.characters = characters
        points = code_points(characters)
        # One entry more than the largest known code point: everything above it is unknown alike.
        self._table = np.full(int(points.max(initial=0)) + 2, -1, dtype=np.int64)
        self._table[points] = np.arange(len(points))

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None) -> CharacterTokenizer:
        """Every character of `texts`, or the most frequent ones that fit."""
        if vocab_size is not None and vocab_size < 258:
            raise UsageError(f"vocab_size {vocab_size} is too small: 256 bytes, <eos> and a character need 258")
        counts = _counts(texts)
        points = np.flatnonzero(counts)
        frequent = points[np.argsort(-counts[points], kind="stable")]
        return cls.of(frequent if vocab_size is None else frequent[: vocab_size - 257])

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
        return len(self.characters) + 257

    def encode(self, text: str) -> np.ndarray:
        points = code_points(text)
        ids = self._table[np.minimum(points, len(self._table) - 1)]
        unknown = ids < 0
        return self._with_bytes(points, ids, unknown) if unknown.any() else ids

    def piece(self, token: int, previous: int | None) -> bytes:
        return self._piece_of[token]

    def settings(self) -> dict[str, Any]:
        return {"characters": self.characters}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        return cls(settings["characters"])

    @cached_property
    def _piece_of(self) -> list[bytes]:
        return [character.encode() for character in self.characters] + [bytes((byte,)) for byte in range(256)]

    def _with_bytes(self, points: np.ndarray, ids: np.ndarray, unknown: np.ndarray) -> np.ndarray:
        """`ids` with each unknown character widened to the one to four tokens of its bytes."""
        widths = np.ones(len(ids), dtype=np.int64)
        widths[unknown] += np.searchsorted([0x80, 0x800, 0x10000], points[unknown], side="right")
        ends = np.cumsum(widths)
        result = np.empty(ends[-1], dtype=np.int64)
        is_byte = np.ones(len(result), dtype=bool)
        is_byte[ends[~unknown] - 1] = False
        result[~is_byte] = ids[~unknown]
        spelled = utf8(points[unknown].tobytes().decode("utf-32-le"))
        result[is_byte] = np.frombuffer(spelled, dtype=np.uint8).astype(np.int64) + len(self.characters)
        return result


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

    @property
    def vocab_size(self) -> int:
        return 257

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(utf8(text), dtype=np.uint8).astype(np.int64)

    def piece(self, token: int, previous: int | None) -> bytes:
        return bytes((token,))

    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:  # noqa: ARG003
        return cls()
