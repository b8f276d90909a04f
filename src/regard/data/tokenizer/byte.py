"""Bytes: 256 tokens for the bytes of UTF-8, and `<eos>`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from regard.data.tokenizer.tokenizer import Tokenizer, utf8


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
