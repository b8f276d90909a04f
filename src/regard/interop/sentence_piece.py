"""Model files of SentencePiece (`.model`, `.spm`), of both its kinds: the most probable pieces, and merges in the order
of their scores.

They are protocol buffers: fields of a number and a wire type, read here as far as a tokenizer needs them.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.data.tokenizer.charsmap import read_charsmap
from regard.data.tokenizer.piece import SPACE, PieceTokenizer
from regard.errors import LONGEST_TOLD, CheckpointError
from regard.interop.gguf_tokenizer import merges_of
from regard.storage.regular import NotRegular, TooLarge, read_regular

LARGEST = 1 << 27  # bytes of a file: one of 256,000 pieces has 4 million
PIECES, TRAINER, NORMALIZER = 1, 2, 3  # fields of a model
MODEL_TYPE, BY_BYTES, SUFFIX, IDS = 3, 35, 24, {"unknown": 40, "start": 41, "end": 42, "pad": 43}  # of its trainer
CHARSMAP, PREFIX, JOINED, ESCAPED = 2, 3, 4, 5  # of its normalizer
NORMAL, UNKNOWN, CONTROL, OWN, UNUSED, BYTE = range(1, 7)  # kinds of pieces
UNIGRAM, BPE = 1, 2  # kinds of models
ZERO = struct.pack("<f", 0.0)  # the score of a piece that says none
DEFAULT_IDS = {"unknown": 0, "start": 1, "end": 2, "pad": -1}


@dataclass(frozen=True, eq=False)
class Pieces:
    """What a model file says. by_merges: neighbours are joined, else the most probable pieces found.

    ids  of special tokens by what they are for, below 0 for none.
    """

    names: list[str]
    scores: list[float]
    kinds: list[int]
    by_merges: bool = False
    by_bytes: bool = False
    charsmap: bytes = b""
    prefix: bool = True
    joined: bool = True
    ids: dict[str, int] = field(default_factory=dict)

    @property
    def special(self) -> dict[str, str]:
        """Special tokens by what they are for."""
        return {use: self.names[number] for use, number in self.ids.items() if 0 <= number < len(self.names)}


def read_pieces(path: Path) -> Pieces:
    """The pieces of a model file."""
    try:
        return _parsed(read_regular(path, LARGEST))
    except (NotRegular, TooLarge, OSError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from None
    except (ValueError, IndexError, struct.error, TypeError) as error:
        reason = " ".join(str(error).split())[:LONGEST_TOLD]
        raise CheckpointError(f"{path}: not a readable model of SentencePiece: {reason}") from None


def piece_tokenizer(
    pieces: Pieces, special: dict[str, str], vocab_size: int, vocabulary: dict[str, int] | None = None
) -> PieceTokenizer:
    """The tokenizer of such pieces. vocabulary: ids of the model by piece, where these are not the places in the file,
    as Marian has them."""
    rules: dict[str, Any] = {
        "charsmap": base64.b64encode(pieces.charsmap).decode(),
        "prefix": pieces.prefix,
        "joined": pieces.joined,
        "by_bytes": pieces.by_bytes,
        "codes": False,
    }
    if vocabulary is None:
        rules["hidden"] = [number for number, kind in enumerate(pieces.kinds) if kind not in (NORMAL, OWN)]
        return PieceTokenizer(_finder(pieces), special, vocab_size, list(pieces.names), rules=rules)
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    if [vocabulary[token] for token in tokens] != list(range(len(tokens))):
        raise ValueError(f"ids of {len(tokens)} tokens are not those from 0 on")
    rules |= {"hidden": [], "codes": True}
    return PieceTokenizer(_finder(pieces), special, vocab_size, tokens, rules=rules)


def _finder(pieces: Pieces) -> dict[str, Any]:
    """What finds pieces in a text, of which those that no text spells have names that none can: with a blank."""
    from tokenizers import AddedToken, Tokenizer, decoders, models

    spelled = [kind in (NORMAL, OWN) for kind in pieces.kinds]
    names = [name if seen else f" {name}" for name, seen in zip(pieces.names, spelled, strict=True)]
    unknown = pieces.kinds.index(UNKNOWN) if UNKNOWN in pieces.kinds else None
    if pieces.by_merges:
        ids = {name: number for number, name in enumerate(names)}
        plain = {name for name, kind in zip(names, pieces.kinds, strict=True) if kind == NORMAL}
        named: Any = None if unknown is None else names[unknown]
        model: Any = models.BPE(vocab=ids, merges=merges_of(ids, pieces.scores, plain), unk_token=named)
    else:
        model = models.Unigram(list(zip(names, pieces.scores, strict=True)), unknown, False)
    made = Tokenizer(model)
    parts = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)] if pieces.prefix else parts)
    own = [name for name, kind in zip(names, pieces.kinds, strict=True) if kind == OWN]
    made.add_tokens([AddedToken(name, special=False, normalized=False) for name in own])
    return json.loads(made.to_str())


def _parsed(content: bytes) -> Pieces:
    names, scores, kinds = [], [], []
    trainer, normalizer = Message(b""), Message(b"")
    for number, value in _fields(content):
        if number == PIECES:
            piece = Message(value)
            names.append(piece.data(1).decode())
            scores.append(struct.unpack("<f", piece.data(2, ZERO))[0])
            kinds.append(piece.whole(3, NORMAL))
        elif number == TRAINER:
            trainer = Message(value)
        elif number == NORMALIZER:
            normalizer = Message(value)
    if not names or len(set(names)) != len(names) or not all(names):
        raise ValueError(f"{len(names)} pieces, of which {len(set(names))} differ")
    form = trainer.whole(MODEL_TYPE, UNIGRAM)
    if form not in (UNIGRAM, BPE) or trainer.whole(SUFFIX, 0) or not normalizer.whole(ESCAPED, 1):
        raise ValueError("models of words or characters, and blanks after words, are not supported")
    charsmap = normalizer.data(CHARSMAP)
    read_charsmap(charsmap)
    ids = {use: _signed(trainer.whole(number, DEFAULT_IDS[use])) for use, number in IDS.items()}
    flags = {"prefix": bool(normalizer.whole(PREFIX, 1)), "joined": bool(normalizer.whole(JOINED, 1))}
    by_bytes = bool(trainer.whole(BY_BYTES, 0)) and BYTE in kinds
    return Pieces(names, scores, kinds, form == BPE, by_bytes, charsmap, ids=ids, **flags)


class Message:
    """Fields by their number, of which the last of each counts, as far as they are of the kind that is asked for."""

    def __init__(self, content: bytes) -> None:
        self._found = dict(_fields(content))

    def whole(self, number: int, default: int) -> int:
        found = self._found.get(number, default)
        if not isinstance(found, int):
            raise ValueError(f"field {number} is no whole number")
        return found

    def data(self, number: int, default: bytes = b"") -> bytes:
        found = self._found.get(number, default)
        if not isinstance(found, bytes):
            raise ValueError(f"field {number} holds no bytes")
        return found


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Fields of a message: whole numbers as such, all others as bytes."""
    place = 0
    if not isinstance(content, bytes):
        raise ValueError("a whole number in the place of a message")
    while place < len(content):
        key, place = _varint(content, place)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, place = _varint(content, place)
        elif wire in (1, 2, 5):
            size = 8 if wire == 1 else 4
            if wire == 2:
                size, place = _varint(content, place)
            value, place = content[place : place + size], place + size
            if place > len(content):
                raise ValueError("ends in the middle of a field")
        else:
            raise ValueError(f"a field of wire type {wire}")
        yield number, value


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(content):
            raise ValueError("ends in the middle of a field")
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _signed(value: int) -> int:
    """A number as the 64 bits of a whole number with a sign."""
    return value - (1 << 64) if value >= 1 << 63 else value
