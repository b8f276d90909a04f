"""The tokenizer of a Hugging Face folder as it is, with its special tokens said one by one.

tokenizer.json                                     of Hugging Face `tokenizers`
tokenizer.model, spiece.model                      of SentencePiece, read without it
vocab.json with source.spm and target.spm          Marian's, one for each side
vocab.json with merges.txt, vocab.txt              made a tokenizer.json by transformers
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.chat import LONGEST_TEMPLATE
from regard.data.tokenizer.foreign import ForeignTokenizer, library_tokenizer
from regard.errors import LONGEST_TOLD, CheckpointError, RegardError
from regard.interop.sentence_piece import piece_tokenizer, read_pieces
from regard.storage.manifest import read_json
from regard.storage.regular import NotRegular, TooLarge, read_regular

FILE, SETTINGS, NAMED = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
GENERATION, TEMPLATE = "generation_config.json", "chat_template.jinja"
PIECES = ("tokenizer.model", "spiece.model")
OLDER = ("vocab.json", "vocab.txt", "sentencepiece.bpe.model")
SIDES, VOCABULARY = ("source.spm", "target.spm"), "vocab.json"
LARGEST = 1 << 27  # bytes of a tokenizer.json: one of 256,000 tokens has 33 million
IDS = 1 << 32  # that the library has room for
Special = dict[str, str]


@dataclass(frozen=True)
class Found:
    """A tokenizer that lacks its special tokens.

    file   where it is from.
    made   it with these and for so many rows of a model.
    name   of a token by its id, None where there is none.
    first  ids that stand before the words of every text where it is framed, and those after it.
    own    special tokens by use that it says itself.
    """

    file: Path
    made: Callable[[Special, int], ForeignTokenizer]
    name: Callable[[int], str | None]
    frame: tuple[int, ...] = ()
    own: tuple[tuple[str, str], ...] = ()

    def with_special(self, special: Special, vocab_size: int) -> ForeignTokenizer:
        try:
            return self.made(special, vocab_size)
        except (ValueError, KeyError, TypeError, AttributeError, RegardError) as error:
            reason = " ".join(str(error).split())[:LONGEST_TOLD]
            raise CheckpointError(f"{self.file}: {reason}") from None


def tokenizer_of(folder: Path, config: dict[str, Any], vocab_size: int, *, framed: bool) -> ForeignTokenizer:
    """The tokenizer of a folder for a model with `vocab_size` rows. framed: it reads texts in a frame, as BERT does."""
    found = _found(folder)
    told = _said(folder, config, found)
    begins = ("cls_token", "bos_token") if framed else ("bos_token", "eos_token")
    ends = ("sep_token", "eos_token") if framed else ("eos_token", "bos_token")
    special = _special(folder, found, told, {"start": begins, "end": ends})
    turn = _turn(folder, found, special["end"])
    made = found.with_special(special | ({"turn": turn} if turn else {}), vocab_size)
    made.chat = chat_template(folder)
    return made


def chat_template(folder: Path) -> str:
    """The template of conversations: a file of its own, or a key of the tokenizer's settings; "" without one."""
    file = folder / TEMPLATE
    if file.exists():
        try:
            return read_regular(file, LONGEST_TEMPLATE).decode()
        except (NotRegular, TooLarge, OSError, UnicodeDecodeError) as error:
            raise CheckpointError(f"{file}: cannot be read: {error}") from None
    settings = read_json(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
    found = settings.get("chat_template") if isinstance(settings, dict) else None
    if isinstance(found, list):
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else ""


def _turn(folder: Path, found: Found, end: str) -> str | None:
    """The token that ends an answer, where another one than the end of a text does."""
    if not (folder / GENERATION).exists():
        return None
    told = read_json(folder / GENERATION)
    numbers = told.get("eos_token_id") if isinstance(told, dict) else None
    names = [found.name(number) for number in numbers if isinstance(number, int)] if isinstance(numbers, list) else []
    return next((name for name in names if name is not None and name != end), None)


def pair_tokenizers(folder: Path, config: dict[str, Any], vocab_size: int) -> tuple[ForeignTokenizer, ForeignTokenizer]:
    """Those of what is read and of what is written; one and the same where the folder has one."""
    sides = [_marian(folder, name) for name in SIDES] if _is_marian(folder) else [_found(folder)]
    made = []
    for found in sides:
        told = _said(folder, config, found)
        special = _special(folder, found, told, {"end": ("eos_token",)})
        special["start"] = _start(folder, config, found)
        before = [token for token in found.frame if found.name(token) != special["end"]]
        if len(before) > 1:
            raise CheckpointError(f"{found.file}: puts {len(before)} tokens before a text, one is supported")
        if before:
            special["first"] = str(found.name(before[0]))
        made.append(found.with_special(special, vocab_size))
    return made[0], made[-1]


def _special(folder: Path, found: Found, told: Special, needed: dict[str, tuple[str, ...]]) -> Special:
    uses = needed | {"mask": ("mask_token",), "pad": ("pad_token",), "unknown": ("unk_token",)}
    special, own = {}, dict(found.own)
    for use, names in uses.items():
        token = next((told[name] for name in names if name in told), own.get(use))
        if token is not None:
            special[use] = token
        elif use in needed:
            raise CheckpointError(f"{folder / SETTINGS}: {names[0]}: no file of the folder says it")
    return special


def _start(folder: Path, config: dict[str, Any], found: Found) -> str:
    """The token that what is written begins with."""
    key = "decoder_start_token_id"
    number = config.get(key)
    if number is None and (folder / GENERATION).exists():
        told = read_json(folder / GENERATION)
        number = told.get(key) if isinstance(told, dict) else None
    name = found.name(number) if isinstance(number, int) else None
    if name is None:
        raise CheckpointError(f"{folder / 'config.json'}: {key}: {str(number)[:20]} is no token of {found.file.name}")
    return name


def _found(folder: Path) -> Found:
    file = folder / FILE
    if file.exists():
        content = read_json(file, LARGEST)
        if not isinstance(content, dict):
            raise CheckpointError(f"{file}: expected an object, found {type(content).__name__}")
        return _library(file, content)
    pieces = next((folder / name for name in PIECES if (folder / name).exists()), None)
    if pieces is not None:
        read = read_pieces(pieces)
        return Found(
            pieces,
            lambda special, size: piece_tokenizer(read, special, size),
            lambda number: read.names[number] if 0 <= number < len(read.names) else None,
            own=tuple(read.special.items()),
        )
    return _by_transformers(folder)


def _library(file: Path, content: dict[str, Any]) -> Found:
    try:
        inner = library_tokenizer(content)
    except (ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:LONGEST_TOLD]
        raise CheckpointError(f"{file}: {reason}") from None
    frame = tuple(inner.encode("", add_special_tokens=True).ids)

    def name(number: int) -> str | None:
        return inner.id_to_token(number) if 0 <= number < IDS else None

    return Found(file, lambda special, size: ForeignTokenizer(content, special, size), name, frame)


def _by_transformers(folder: Path) -> Found:
    older = next((folder / name for name in OLDER if (folder / name).exists()), None)
    if older is None:
        raise CheckpointError(f"{folder}: has no {FILE}, by which the model reads text")
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise CheckpointError(f"{older}: {FILE} is made of it by transformers: pip install transformers") from None
    try:
        made: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        content = json.loads(made.backend_tokenizer.to_str())
    except Exception as error:
        reason = " ".join(str(error).split())[:LONGEST_TOLD]
        raise CheckpointError(f"{older}: transformers makes no {FILE} of it: {reason}") from None
    return _library(older, content)


def _is_marian(folder: Path) -> bool:
    has_both = all((folder / name).exists() for name in SIDES)
    return has_both and (folder / VOCABULARY).exists() and not (folder / FILE).exists()


def _marian(folder: Path, side: str) -> Found:
    """The pieces of one side, whose ids a list tells that both sides have."""
    file = folder / VOCABULARY
    vocabulary, pieces = read_json(file, LARGEST), read_pieces(folder / side)
    if not isinstance(vocabulary, dict) or not all(type(number) is int for number in vocabulary.values()):
        raise CheckpointError(f"{file}: expected an object of ids by pieces")
    names = {number: name for name, number in vocabulary.items()}
    own = {"end": "</s>", "unknown": "<unk>", "pad": "<pad>"}
    return Found(
        folder / side,
        lambda special, size: piece_tokenizer(pieces, special, size, vocabulary),
        names.get,
        own=tuple((use, name) for use, name in own.items() if name in vocabulary),
    )


def _said(folder: Path, config: dict[str, Any], found: Found) -> Special:
    """Special tokens by their names: of the tokenizer's settings, and where these are silent of the model's config."""
    told: Special = {}
    for name in (SETTINGS, NAMED):
        if not (folder / name).exists():
            continue
        content = read_json(folder / name)
        if not isinstance(content, dict):
            raise CheckpointError(f"{folder / name}: expected an object, found {type(content).__name__}")
        for key, value in content.items():
            token = value.get("content") if isinstance(value, dict) else value
            if key.endswith("_token") and isinstance(token, str):
                told.setdefault(key, token)
    for key in ("bos_token", "eos_token"):
        number = config.get(f"{key}_id")
        number = number[0] if isinstance(number, list) and number else number
        token = found.name(number) if isinstance(number, int) else None
        if token is not None:
            told.setdefault(key, token)
    return told
