"""What a tokenizer is.

    ids = tokenizer.encode(text)        int64, no specials added
    text = tokenizer.decode(ids)

Every tokenizer of ours has one special token, `<eos>`, always the last id. It separates documents and is the start
symbol from which the first token is predicted. Text that spells "<eos>" is ordinary text and never becomes it.
Tokenizers of other programs (foreign.py) may have other special tokens, at any id.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from regard.errors import DataError

EOS = "<eos>"


class Tokenizer(ABC):
    """Base of all tokenizers: a fixed list of tokens, each a piece of UTF-8 text that need not be whole characters."""

    kind: str
    # Whether a text may be cut between words only. False: anywhere between characters.
    sees_words: ClassVar[bool] = True
    # Whether it may not be cut at all: what a token is may depend on where a text begins.
    sees_texts: ClassVar[bool] = False
    # Whether other processes are no help: it is about as fast as a disk, or has all cores at work by itself.
    works_alone: ClassVar[bool] = False
    # Whether a part of a long text teaches it enough; otherwise it has to see all of it.
    learns_from_sample: ClassVar[bool] = False
    # The template by which a conversation is written, of a model that was taught to answer.
    chat: str = ""
    # Whether tokens bring the space before a word along.
    brings_space: bool = False

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """The number of tokens, `<eos>` included."""

    @abstractmethod
    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, int64."""

    def encode_all(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of many texts one after the other, int64, and how many each has."""
        found = [self.encode(text) for text in texts]
        sizes = np.fromiter(map(len, found), np.int64, len(found))
        return np.concatenate([np.empty(0, np.int64), *found]), sizes

    @abstractmethod
    def piece(self, token: int, previous: int | None) -> bytes:
        """The bytes that a token adds to a text whose last token was `previous` (None at the start). Never `<eos>`."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What `from_settings` needs, as plain JSON values."""

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """The tokenizer that `settings` describes. Raises ValueError, KeyError or TypeError on anything else."""

    @property
    def eos_id(self) -> int:
        return self.vocab_size - 1

    @property
    def start_id(self) -> int:
        """The token that a text begins with, from which its first one is predicted."""
        return self.eos_id

    @property
    def opening(self) -> tuple[int, ...]:
        """The start symbol, and what then stands before the words of every text."""
        return (self.start_id,)

    @property
    def template_names(self) -> dict[str, str]:
        """Special tokens by the names that chat templates have for them."""
        return {}

    @property
    def turn_id(self) -> int:
        """The token that ends an answer in a conversation."""
        return self.eos_id

    @property
    def pad_id(self) -> int | None:
        """The token that fills up rows and is never part of a text; None where there is none."""
        return None

    @property
    def mask_id(self) -> int | None:
        """The token that stands for a hidden one; None where that is a row after the tokenizer's own."""
        return None

    def is_special(self, token: int) -> bool:
        """Whether a token is no piece of text."""
        return token == self.eos_id

    @property
    def unknown_id(self) -> int | None:
        """The token that stands for what has none of its own; None where everything can be spelt."""
        return None

    def unknown_sizes(self, text: str) -> np.ndarray:
        """Bytes of a text that each unknown token of `encode(text)` stands for, with a blank before them; 0 where the
        text spells that token itself. int64."""
        known = self.unknown_id is None
        return np.zeros(0 if known else np.count_nonzero(self.encode(text) == self.unknown_id), np.int64)

    def spelling(self, sizes: np.ndarray) -> np.ndarray:
        """Nats that say what unknown tokens of such sizes stand for, beyond their own probability: 8 bits a byte, the
        blank being what ends a word."""
        return sizes * math.log(256)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of `ids`. `<eos>` adds nothing; bytes that are no character become U+FFFD."""
        return b"".join(self._pieces(ids)).decode("utf-8", "replace")

    def token_text(self, token: int) -> str:
        """One token for display; one that is no whole character as its bytes, such as `<0xE2>`."""
        if token == self.eos_id:
            return EOS
        piece = self.piece(self.checked(token), None)
        try:
            return piece.decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in piece)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, `format` first."""
        return {"format": "regard-tokenizer", "version": 1, "kind": self.kind} | self.settings()

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON: equal exactly when two tokenizers are."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def _pieces(self, ids: Sequence[int] | np.ndarray) -> Iterator[bytes]:
        previous = None
        for token in ids.tolist() if isinstance(ids, np.ndarray) else ids:
            if not self.is_special(token):
                yield self.piece(self.checked(token), previous)
                previous = token

    def checked(self, token: int) -> int:
        """The id itself; one that is not of this vocabulary is refused."""
        if not 0 <= token < self.vocab_size:
            raise DataError(f"token id {token} is not in 0 .. {self.vocab_size - 1}: another tokenizer made it")
        return token


class Streamer:
    """Turns ids into text one by one. What it emits is whole characters, and all of it together is `decode(ids)`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.previous: int | None = None
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that is certain after one more token; "" while a character is incomplete."""
        if self.tokenizer.is_special(token):
            return ""
        piece = self.tokenizer.piece(self.tokenizer.checked(token), self.previous)
        self.previous = token
        return self.decoder.decode(piece)

    def finish(self) -> str:
        """What was still held back."""
        return self.decoder.decode(b"", final=True)


def streamer(tokenizer: Tokenizer) -> Streamer:
    """A fresh `Streamer`."""
    return Streamer(tokenizer)


def utf8(text: str) -> bytes:
    """The text as UTF-8; a lone surrogate, which is no character, is refused."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _surrogate(text, error) from None


def code_points(text: str) -> np.ndarray:
    """The characters as numbers, uint32."""
    try:
        return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    except UnicodeEncodeError as error:
        raise _surrogate(text, error) from None


def _surrogate(text: str, error: UnicodeEncodeError) -> DataError:
    return DataError(
        f"character {error.start} of the text is a lone surrogate (U+{ord(text[error.start]):04X}), "
        f"which no encoding can hold: remove it or read the text again as UTF-8"
    )
