"""Subwords: byte-pair encoding and the unigram language model, applied by Hugging Face `tokenizers`.

Both work on the bytes of UTF-8, each byte written as a printable character (Radford et al. 2019, 2.2), and all 256 of
them are tokens, so that every text round trips. `<eos>` lives outside their vocabulary, so no text can spell it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regard.core.waiting import interruptible
from regard.data.tokenizer import unigram
from regard.data.tokenizer.tokenizer import Tokenizer, utf8
from regard.errors import UsageError

if TYPE_CHECKING:
    import tokenizers

DEFAULT_VOCAB_SIZE = 4096
# The library keeps about 100 bytes a token while it encodes, so a long text goes in pieces of this many characters; in
# these it is a tenth faster than in pieces of eight times the size.
PIECE = 1 << 13
# Characters in one call of the library, which hears no signal before its end: a few hundredths of a second.
TOGETHER = 128 * PIECE
# A cut here cannot be seen in the tokens: the library splits a text into words first, and none goes on into a space.
# Inside a run of spaces it could, since the library looks at what follows the run.
CUT = re.compile(r"(?<=\S)(?=[ \n])")


def _byte_characters() -> list[str]:
    """The printable character that stands for each byte: itself where it prints, else one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    spare = {byte: chr(0x100 + i) for i, byte in enumerate(others)}
    return [chr(byte) if byte in printable else spare[byte] for byte in range(256)]


BYTE_CHARACTERS = _byte_characters()
BYTE_OF = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


class SubwordTokenizer(Tokenizer):
    """Tokens in the order of the wrapped tokenizer, then `<eos>`. `model` is its JSON."""

    kind = ""
    model_type = ""
    brings_space = True
    learns_from_sample = True
    works_alone = True

    def __init__(self, model: dict[str, Any]) -> None:
        self.model = model
        self._inner = _built(model, self.model_type)
        vocabulary = self._inner.get_vocab()
        by_id = sorted(vocabulary, key=vocabulary.__getitem__)
        if sorted(vocabulary.values()) != list(range(len(by_id))):
            raise ValueError("the ids of the vocabulary have gaps")
        if not vocabulary.keys() >= set(BYTE_CHARACTERS):
            raise ValueError("the vocabulary lacks some of the 256 bytes")
        self._piece_of = [bytes(BYTE_OF[character] for character in token) for token in by_id]

    @property
    def vocab_size(self) -> int:
        return len(self._piece_of) + 1

    def encode(self, text: str) -> np.ndarray:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        parts = ((number, part) for number, text in enumerate(texts) for part in pieces(_whole(text), PIECE))
        sizes, found = np.zeros(len(texts), np.int64), [np.empty(0, np.int64)]
        for batch in _together(parts):
            encodings = self._inner.encode_batch_fast([part for _, part in batch], add_special_tokens=False)
            for (number, _), encoding in zip(batch, encodings, strict=True):
                found.append(np.array(encoding.ids, dtype=np.int64))
                sizes[number] += len(found[-1])
        return np.concatenate(found), sizes

    def piece(self, token: int, previous: int | None) -> bytes:
        return self._piece_of[token]

    def settings(self) -> dict[str, Any]:
        return {"model": self.model}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        return cls(settings["model"])


class BytePairTokenizer(SubwordTokenizer):
    """Merges the most frequent pair of neighbours again and again (Sennrich et al. 2016)."""

    kind = "bpe"
    model_type = "BPE"

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None) -> BytePairTokenizer:
        from tokenizers import models, trainers

        inner = _library(models.BPE())
        size = _size_for_library(vocab_size)
        trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=BYTE_CHARACTERS, show_progress=False)
        interruptible(lambda: inner.train_from_iterator(_checked(texts), trainer))
        return cls(json.loads(inner.to_str()))


class UnigramTokenizer(SubwordTokenizer):
    """Keeps the pieces that explain the text best, and splits by the likeliest of all segmentations (Kudo 2018)."""

    kind = "unigram"
    model_type = "Unigram"

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None) -> UnigramTokenizer:
        from tokenizers import models

        scores = unigram.train_pieces(_checked(texts), _size_for_library(vocab_size))
        written = ["".join(BYTE_CHARACTERS[byte] for byte in piece) for piece in scores]
        inner = _library(models.Unigram(list(zip(written, scores.values(), strict=True))))
        return cls(json.loads(inner.to_str()))


def pieces(text: str, size: int) -> Iterator[str]:
    """The text in parts of about `size` characters that are encoded apart as they are together."""
    start = 0
    while len(text) - start > size:
        cut = CUT.search(text, start + size)
        if cut is None:
            break
        yield text[start : cut.start()]
        start = cut.start()
    yield text[start:]


def _together(parts: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Parts of texts, in lists of about so many characters."""
    batch, held = list[tuple[int, str]](), 0
    for number, part in parts:
        batch.append((number, part))
        held += len(part)
        if held >= TOGETHER or len(batch) >= 1 << 16:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _whole(text: str) -> str:
    """The text itself; one that no encoding can hold is refused."""
    utf8(text)
    return text


def _size_for_library(vocab_size: int | None) -> int:
    size = DEFAULT_VOCAB_SIZE if vocab_size is None else vocab_size
    if size < 257:
        raise UsageError(f"vocab_size {size} is too small: 256 bytes and <eos> need 257")
    return size - 1


def _checked(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        utf8(text)
        yield from pieces(text, PIECE)


def _library(model: Any) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer as LibraryTokenizer
    from tokenizers import pre_tokenizers

    inner = LibraryTokenizer(model)
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return inner


def _built(model: dict[str, Any], model_type: str) -> tokenizers.Tokenizer:
    """The wrapped tokenizer. Anything in the JSON that would change texts or add specials is refused."""
    from tokenizers import Tokenizer as LibraryTokenizer

    if model["model"]["type"] != model_type:
        raise ValueError(f"expected a model of type {model_type}, found {model['model']['type']!r}")
    wanted = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    if model["pre_tokenizer"] != wanted:
        raise ValueError("the pre_tokenizer must be ByteLevel without a prefix space")
    for key in ("normalizer", "truncation", "padding", "added_tokens", "post_processor"):
        if model.get(key):
            raise ValueError(f"{key} must be empty")
    try:
        return LibraryTokenizer.from_str(json.dumps(model))
    except Exception as error:
        raise ValueError(str(error)) from None
