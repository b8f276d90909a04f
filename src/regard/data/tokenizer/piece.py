"""Tokenizers of SentencePiece: what it does to a text before it looks for pieces, and which ids these have.

    " Über\tuns "    rewritten, blanks joined, made signs, one put before:    "▁Über▁uns"    then pieces    then ids

Pieces are found by Hugging Face `tokenizers`, and their ids are those of SentencePiece for every text: one that spells
`<s>` is ordinary text, as it is there. What has no piece is its bytes where the model has them, else unknown.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Self

import numpy as np

from regard.data.tokenizer.charsmap import read_charsmap
from regard.data.tokenizer.foreign import ForeignTokenizer
from regard.data.tokenizer.tokenizer import utf8

SPACE = "▁"
FLAGS = ("prefix", "joined", "by_bytes", "codes")
CODE = re.compile(">>.+<<")


class PieceTokenizer(ForeignTokenizer):
    """model: the JSON of what finds pieces. tokens: by id; some are no piece of a text, see `hidden`.

    charsmap  the table of characters, in base 64.
    prefix    a blank is put before a text. joined: those that follow each other are one, and those around it none.
    by_bytes  what has no piece is its bytes. hidden: ids that no text spells.
    codes     a text may begin with a token for the language to be written, such as >>fra<<.
    """

    kind = "sentencepiece"

    def __init__(
        self,
        model: dict[str, Any],
        special: dict[str, str],
        vocab_size: int,
        tokens: list[str],
        *,
        rules: dict[str, Any],
        chat: str = "",
    ) -> None:
        self.tokens, self.rules = tokens, rules
        self._charsmap = read_charsmap(base64.b64decode(rules["charsmap"]))
        self._ids_of = {token: number for number, token in enumerate(tokens)}
        if len(self._ids_of) != len(tokens) or len(tokens) > vocab_size:
            raise ValueError(f"tokens: {len(tokens)}, of which {len(self._ids_of)} differ, for {vocab_size} rows")
        hidden = {int(number) for number in rules["hidden"]}
        self._spelled = {token: number for token, number in self._ids_of.items() if number not in hidden}
        self._hidden = hidden
        super().__init__(model, special, vocab_size, chat)
        self._bytes = [self._ids_of.get(f"<0x{byte:02X}>", -1) for byte in range(256)] if rules["by_bytes"] else []
        if self._bytes and min(self._bytes) < 0:
            raise ValueError("tokens: some of the 256 bytes have none")

    def encode(self, text: str) -> np.ndarray:
        return np.array(self._read(text)[0], dtype=np.int64)

    def unknown_sizes(self, text: str) -> np.ndarray:
        return np.array(self._read(text)[1], dtype=np.int64)

    def _read(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of a text, and the bytes that each unknown one among them stands for."""
        utf8(text)
        found, sizes = list[int](), list[int]()
        code = CODE.match(text) if self.rules["codes"] else None
        if code is not None:
            found.append(self._ids_of.get(code[0], self._id_of["unknown"]))
            sizes += [len(code[0].encode())] * (found[0] == self.unknown_id)
            text = text[code.end() :]
        text = self._prepared(text)
        for start, end in self._inner.encode(text, add_special_tokens=False).offsets:
            piece = text[start:end]
            number = self._spelled.get(piece)
            if number is not None:
                found.append(number)
            elif self._bytes:
                found += [self._bytes[byte] for byte in piece.encode()]
            elif self.unknown_id is None:
                raise ValueError(f"{piece[:20]!r} has no token, and there is none for what has none")
            else:
                if not found or found[-1] != self.unknown_id:
                    found.append(self.unknown_id)
                    sizes.append(0)
                sizes[-1] += len(piece.replace(SPACE, " ").encode())
        return found, sizes

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"tokens": self.tokens, "rules": self.rules}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        tokens, rules, size = settings["tokens"], settings["rules"], settings["vocab_size"]
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise TypeError("tokens must be a list of texts")
        if not isinstance(rules, dict) or rules.keys() != {"charsmap", "hidden", *FLAGS} or type(size) is not int:
            raise TypeError("rules must say charsmap, hidden, prefix, joined, by_bytes and codes")
        return cls(
            settings["model"],
            cls.checked_special(settings),
            size,
            tokens,
            rules=rules,
            chat=str(settings.get("chat", "")),
        )

    def _prepared(self, text: str) -> str:
        text = self._charsmap.rewritten(text)
        if self.rules["joined"]:
            text = " ".join(part for part in text.split(" ") if part)
        if not text:
            return ""
        text = (" " if self.rules["prefix"] else "") + text
        text = text.replace(" ", SPACE)
        return text.rstrip(SPACE) if self.rules["joined"] else text

    @property
    def _own_unknown(self) -> str | None:
        return None  # what finds pieces has ids of its own

    def _name(self, token: int) -> str | None:
        return self.tokens[token] if 0 <= token < len(self.tokens) else None

    def _number(self, token: str) -> int | None:
        return self._ids_of.get(token)

    def _largest(self) -> int:
        return len(self.tokens) - 1

    def _outside_text(self) -> set[int]:
        return {number for number in self._hidden if not self._name_of_byte(number)}

    def _name_of_byte(self, number: int) -> bool:
        name = self.tokens[number]
        return len(name) == 6 and name.startswith("<0x")
