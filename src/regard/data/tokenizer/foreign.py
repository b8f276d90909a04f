"""Tokenizers of other programs as they are: a `tokenizer.json` of Hugging Face `tokenizers`, and its special tokens.

    "<s>The cat sat</s>"        start, the text, end

Ids are those of the library for every text, also for one that spells a special token: it becomes that token, as it does
where the model comes from. What a text is written back from are the bytes of each token, so that a stream cuts no
character; together they are what the library decodes.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regard.data.tokenizer.subword import BYTE_OF
from regard.data.tokenizer.tokenizer import Tokenizer, utf8

if TYPE_CHECKING:
    import tokenizers

SPECIALS = ("start", "first", "end", "turn", "mask", "pad", "unknown")
NEEDED = ("start", "end")
# Decoders that say of each token what it adds to a text, whatever comes after it.
DECODERS = {"ByteLevel", "WordPiece", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}
BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
BEFORE = "a"  # a token that no decoder changes


class JsonText(str):
    """JSON that the library alone reads: a quarter of a million tokens are not made Python's first."""


class ForeignTokenizer(Tokenizer):
    """model: its JSON, read or as text. special: tokens by what they are for, see SPECIALS; start is what a text begins
    with.

    first       what stands before the words of every text, after the start. turn: what ends an answer.
    chat        the template by which a conversation is written; "" without one.

    vocab_size  rows of the model, which may be more than there are tokens.
    """

    kind = "huggingface"
    sees_texts = True

    def __init__(
        self, model: dict[str, Any] | JsonText, special: dict[str, str], vocab_size: int, chat: str = ""
    ) -> None:
        self._model, self.special, self._size, self.chat = model, special, vocab_size, chat
        self._inner = library_tokenizer(model)
        self._id_of = {use: self._id(use, token) for use, token in special.items()}
        for use in NEEDED:
            if use not in special:
                raise ValueError(f"special: no token is said for {use}")
        largest = self._largest()
        if largest >= vocab_size:
            raise ValueError(f"vocab_size {vocab_size}: there is a token of id {largest}")
        self._specials = self._outside_text() | set(self._id_of.values())
        decoder = self._inner.decoder
        decoders = _decoders(None if decoder is None else json.loads(decoder.__getstate__()))
        self._by_bytes, self._falls_back = "ByteLevel" in decoders, "ByteFallback" in decoders
        self.brings_space = self._by_bytes or "Metaspace" in decoders or "Replace" in decoders
        self._pieces_of: dict[tuple[int, bool], bytes] = {}

    @property
    def vocab_size(self) -> int:
        return self._size

    @property
    def start_id(self) -> int:
        return self._id_of["start"]

    @property
    def eos_id(self) -> int:
        return self._id_of["end"]

    @property
    def opening(self) -> tuple[int, ...]:
        return (self.start_id, *([self._id_of["first"]] if "first" in self._id_of else []))

    @property
    def pad_id(self) -> int | None:
        return self._id_of.get("pad")

    @property
    def mask_id(self) -> int | None:
        return self._id_of.get("mask")

    @property
    def unknown_id(self) -> int | None:
        """That of what is said, or of the library's model; none where it is the end of a text, as in GPT-2, whose
        bytes spell everything."""
        return None if self._unknown in (self.start_id, self.eos_id) else self._unknown

    @cached_property
    def _unknown(self) -> int | None:
        name = self.special.get("unknown") or self._own_unknown
        return None if name is None else self._number(name)

    @property
    def _own_unknown(self) -> str | None:
        """What the library's model says where it finds nothing."""
        return getattr(self._inner.model, "unk_token", None)

    def is_special(self, token: int) -> bool:
        return token in self._specials

    def encode(self, text: str) -> np.ndarray:
        utf8(text)
        return np.array(self._inner.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def unknown_sizes(self, text: str) -> np.ndarray:
        read = self._inner.encode(text, add_special_tokens=False)
        places = [place for token, place in zip(read.ids, read.offsets, strict=True) if token == self.unknown_id]
        return np.array([self._unknown_size(text, *place) for place in places], dtype=np.int64)

    def piece(self, token: int, previous: int | None) -> bytes:
        key = token, previous is None
        if key not in self._pieces_of:
            self._pieces_of[key] = self._piece(token, previous is None)
        return self._pieces_of[key]

    def token_text(self, token: int) -> str:
        name = self._name(self.checked(token))
        if name is None:
            return f"<{token}>"
        return name if token in self._specials else super().token_text(token)

    def settings(self) -> dict[str, Any]:
        model = json.loads(self._model) if isinstance(self._model, JsonText) else self._model
        chat = {"chat": self.chat} if self.chat else {}
        return {"model": model, "special": self.special, "vocab_size": self._size} | chat

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        size = settings["vocab_size"]
        if type(size) is not int:
            raise TypeError("vocab_size must be a whole number")
        return cls(settings["model"], cls.checked_special(settings), size, str(settings.get("chat", "")))

    @property
    def template_names(self) -> dict[str, str]:
        names = {"start": "bos_token", "end": "eos_token", "pad": "pad_token", "unknown": "unk_token"}
        return {name: self.special[use] for use, name in names.items() if use in self.special}

    @property
    def turn_id(self) -> int:
        """The token that ends an answer in a conversation."""
        return self._id_of.get("turn", self.eos_id)

    @staticmethod
    def checked_special(settings: dict[str, Any]) -> dict[str, str]:
        """The special tokens of a file; raises TypeError or ValueError on anything else."""
        special = settings["special"]
        if not isinstance(special, dict):
            raise TypeError("special must be an object")
        for use, token in special.items():
            if use not in SPECIALS or not isinstance(token, str):
                raise ValueError(f"special: {str(use)[:40]!r} is none of {', '.join(SPECIALS)} with a token")
        return special

    def _name(self, token: int) -> str | None:
        """What a token is called."""
        return self._inner.id_to_token(token)

    def _number(self, token: str) -> int | None:
        """The id of what is called so."""
        return self._inner.token_to_id(token)

    def _outside_text(self) -> set[int]:
        """Ids that are no piece of a text, beside those that are for something."""
        return {number for number, token in self._inner.get_added_tokens_decoder().items() if token.special}

    def _largest(self) -> int:
        """The last id of a token."""
        inner, size = self._inner, self._size
        if size - list(map(inner.id_to_token, range(size))).count(None) == inner.get_vocab_size():
            return size - 1  # as many ids below the size as there are tokens: none is above it
        return max(inner.get_vocab(with_added_tokens=True).values(), default=-1)

    def _id(self, use: str, token: str) -> int:
        found = self._number(token)
        if found is None:
            raise ValueError(f"special: {use}: there is no token {token[:40]!r}")
        return found

    def _unknown_size(self, text: str, start: int, end: int) -> int:
        """Bytes of what stands there and has no token, with the blank before it."""
        if text[start:end] == self._name(self._unknown or 0):
            return 0
        return len(utf8(text[start - (text[start - 1 : start] == " ") : end]))

    def _piece(self, token: int, first: bool) -> bytes:
        name = self._name(token)
        if name is None or token in self._specials:
            return b""
        if self._by_bytes:
            known = all(character in BYTE_OF for character in name)
            return bytes(BYTE_OF[character] for character in name) if known else name.encode()
        byte = BYTE.fullmatch(name) if self._falls_back else None
        if byte is not None:
            return bytes([int(byte[1], 16)])
        if first:
            return self._decoded([name]).encode()
        return self._decoded([BEFORE, name])[len(BEFORE) :].encode()

    def _decoded(self, names: list[str]) -> str:
        decoder = self._inner.decoder
        return " ".join(names) if decoder is None else decoder.decode(names)


def library_tokenizer(model: dict[str, Any] | JsonText) -> tokenizers.Tokenizer:
    """The library's tokenizer of its JSON; raises ValueError or TypeError on what is none."""
    from tokenizers import Tokenizer as LibraryTokenizer

    if not isinstance(model, (dict, JsonText)):
        raise TypeError("model must be an object")
    try:
        found = LibraryTokenizer.from_str(model if isinstance(model, JsonText) else json.dumps(model))
    except Exception as error:
        raise ValueError(str(error)) from None
    # Whole texts are read, one at a time: nothing is cut off and nothing filled up.
    found.no_truncation()
    found.no_padding()
    return found


def _decoders(decoder: Any) -> set[str]:
    """The kinds of decoders in a tokenizer's JSON; one whose tokens depend on what follows is refused."""
    if decoder is None:
        return set()
    inner = decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]
    kinds = {part["type"] for part in inner}
    if kinds - DECODERS:
        raise ValueError(f"the decoder {sorted(kinds - DECODERS)[0]} is not known")
    return kinds
