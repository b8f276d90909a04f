"""From a file, a folder or a world to token shards for training and validation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import layout, source, store
from regard.data.account import Account
from regard.data.choices import OPEN_TEXT, TextChoices
from regard.data.prepared import PARTS, Corpus, opened, stored
from regard.data.settings import BY_HASH
from regard.data.shard import ShardWriter, ends_lines
from regard.data.split import rule
from regard.data.stream import Cutter, Texts, TextStream
from regard.data.tabular import is_address, is_table
from regard.data.text_source import TableTexts, text_stream
from regard.data.tokenizer import TOKENIZERS, Tokenizer, train_tokenizer
from regard.data.tokenizer.character import ByteTokenizer, CharacterTokenizer
from regard.data.worlds import PREFIX, text_world
from regard.data.worlds.base import World
from regard.errors import DataError, UsageError, nearest

# Characters are the better unit while their table is no larger than that of bytes.
MOST_CHARACTERS = 256
BEGINNING = 200  # characters by which a person sees what was read


def prepare(
    data: str,
    *,
    tokens: str = "auto",
    vocab_size: int | None = None,
    valid: str = BY_HASH,
    test: float = 0.0,
    documents: str = "auto",
    tokenizer: Tokenizer | None = None,
    cache: str | Path | None = None,
    seed: int = 0,
    how: TextChoices = OPEN_TEXT,
) -> Corpus:
    """The corpus of a path or of an address such as `world:stories?train=5000`.

    tokens     a kind of tokenizer. auto: the world's own; else chars if the training text has at most 256 different
               ones, else bytes. The tokenizer sees the training part only, unless one is given.
    valid      `hash:FRACTION`, `tail:FRACTION` or a path (see `split`). A world makes its own.
    test       the last part of what is held out that neither training nor choosing sees, 0 for none.
    documents  what is a document (see `source`).
    cache      a folder that keeps prepared shards for the next time. None: in memory.
    seed       of a world whose address has none. The split of a text does not depend on it.
    how        how files are read: their form, encoding, and the column of a table.
    """
    _check_choices(data, tokens, vocab_size, tokenizer)
    _check_splitting(data, valid, documents)
    world = text_world(data, seed) if data.startswith(PREFIX) else None
    choices = _Choices(data, world, tokens, vocab_size, valid, test, documents, tokenizer, how)
    if cache is None:
        return _made(choices)
    folder = Path(cache) / _key(choices)
    if not folder.exists():
        store.publish(folder, stored(_made(choices)))
    return opened(folder, name=choices.name, samples=choices.samples, world=choices.world)


@dataclass(frozen=True)
class _Choices:
    """The arguments of `prepare` that the content depends on."""

    data: str
    world: World | None
    tokens: str
    vocab_size: int | None
    valid: str
    test: float
    documents: str
    tokenizer: Tokenizer | None
    how: TextChoices

    @property
    def name(self) -> str:
        if self.world is not None:
            return f"{PREFIX}{self.world.name}"
        return "standard input" if self.data == source.STDIN else Path(self.data).name

    @cached_property
    def is_table(self) -> bool:
        return self.world is None and is_table(self.data, self.how.choices)

    def stream(self, path: str) -> TextStream:
        return text_stream(path, self.documents, self.how)

    @property
    def samples(self) -> str:
        by_row = self.world is not None or self.documents == "line" or self.is_table
        return "documents" if by_row else "windows"

    @property
    def lines(self) -> bool:
        """Whether the end of a document is the end of a line. What a world makes would be written a line each."""
        return self.world is not None or ends_lines(self.documents) or self.is_table


def _made(choices: _Choices) -> Corpus:
    train, held = _measured(choices)
    tokenizer = choices.tokenizer or _trained(train, choices)
    seen, valid, test = (
        writer.shard() for writer in _written([train, held] if held else [train], tokenizer, choices.lines)
    )
    for part, shard in (("training", seen), ("validation", valid)):
        if shard.tokens == shard.n_documents:
            raise DataError(f"the {part} part of {choices.data} holds no tokens; the smallest amount is one")
    # A rule leaves no document on two sides; what was given as validation text may hold some of the training text.
    common = layout.shared(held.scan.documents, train.scan.documents) if held else 0
    told = _account(choices, train, held)
    corpus = Corpus(choices.name, tokenizer, seen, valid, choices.samples, common, choices.world, account=told)
    return replace(corpus, test=test) if choices.test else corpus


@dataclass(frozen=True, eq=False)
class _Text:
    """A text that was measured and laid out."""

    stream: TextStream
    scan: layout.Scan
    laid: layout.Layout

    def parted(self, part: str) -> Iterator[layout.Passage]:
        return layout.parted(self.stream.pieces(part), self.laid)


def _measured(choices: _Choices) -> tuple[_Text, _Text | None]:
    """What is dealt out to training and, where it is a text of its own, what is held out."""
    held_out = rule(choices.valid)
    if choices.world is None and held_out is not None:
        stream = choices.stream(choices.data)
        measured = layout.scan(stream.pieces("reading"))
        try:
            return _Text(stream, measured, layout.layout(measured, held_out, choices.test)), None
        except DataError as error:
            raise DataError(f"{choices.data}: {error}") from None
    if choices.world is not None:
        streams = [Texts(choices.world.documents(part)) for part in ("train", "valid")]
    else:
        streams = [choices.stream(path) for path in (choices.data, choices.valid)]
    scans = [layout.scan(stream.pieces("reading")) for stream in streams]
    train = layout.layout(scans[0], None)
    valid = layout.layout(scans[1], None, choices.test, side=layout.VALID)
    return _Text(streams[0], scans[0], train), _Text(streams[1], scans[1], valid)


def survey(data: str, settings: Any, seed: int = 0) -> Account:
    """What is understood of a text, which is read and measured and not turned into tokens.

    settings  with valid, test, documents and texts, as those of a run's data.
    """
    _check_splitting(data, settings.valid, settings.documents)
    world = text_world(data, seed) if data.startswith(PREFIX) else None
    kept = settings.valid, settings.test, settings.documents, None, settings.texts
    choices = _Choices(data, world, "auto", None, *kept)
    return _account(choices, *_measured(choices))


def _account(choices: _Choices, train: _Text, held: _Text | None) -> Account:
    """Characters of each part, and how the text begins."""
    parts = [train] if held is None else [train, held]
    sizes = np.zeros(len(PARTS), np.int64)
    for one in parts:
        np.add.at(sizes, one.laid.sides, np.diff(one.laid.stops, prepend=0))
    told = train.stream.account if isinstance(train.stream, TableTexts) else Account(form=_form(choices))
    begins = next(train.stream.pieces("reading")).text[:BEGINNING]
    unit = {"unit": "characters", "read": int(sizes.sum()), "facts": {"documents": len(train.scan.documents)}}
    return replace(
        told,
        data=choices.name,
        target="every next token",
        **unit,
        train=int(sizes[layout.TRAIN]),
        valid=int(sizes[layout.VALID]),
        test=int(sizes[layout.TEST]),
        held_out_by="" if choices.world is not None else choices.valid,
        first={"text": begins},
    )


def _form(choices: _Choices) -> str:
    return "plain text" if choices.world is None else "built-in data"


def _trained(train: _Text, choices: _Choices) -> Tokenizer:
    """A tokenizer made of the training part."""
    tokens, world = choices.tokens, choices.world
    if tokens == "auto" and world is None:
        return CharacterTokenizer.of_few(_training_texts(train, False), MOST_CHARACTERS) or ByteTokenizer()
    tokens = world.tokens if world is not None and tokens == "auto" else tokens
    texts = _training_texts(train, TOKENIZERS[tokens].sees_words)
    if world is not None:
        # A small sample may miss words of the world; its own list has them all.
        between = " " if world.tokens == "words" else ""
        texts = chain([between.join(world.vocabulary)], texts)
    return train_tokenizer(tokens, texts, vocab_size=choices.vocab_size)


def _training_texts(train: _Text, sees_words: bool) -> Iterator[str]:
    """The training part in pieces that a tokenizer may learn from."""
    cutter = Cutter() if sees_words else None
    for side, text, ends in train.parted("learning tokens"):
        if side == layout.TRAIN:
            ready = text if cutter is None else cutter.add(text, ends)
            if ready:
                yield ready


def _written(texts: Sequence[_Text], tokenizer: Tokenizer, lines: bool) -> list[ShardWriter]:
    """The tokens of the three parts."""
    writers = [ShardWriter(tokenizer, lines=lines, measured=part != "train") for part in PARTS]
    for one in texts:
        for side, text, ends in one.parted("tokenising"):
            writers[side].add(text, ends)
    return writers


def _check_choices(data: str, tokens: str, vocab_size: int | None, tokenizer: Tokenizer | None) -> None:
    """Refuse a tokenizer that cannot be before anything is read."""
    if tokens != "auto" and tokens not in TOKENIZERS:
        raise UsageError(f"unknown tokens {tokens!r}{nearest(tokens, ['auto', *TOKENIZERS])}")
    if tokenizer is not None and tokens not in ("auto", tokenizer.kind):
        raise UsageError(f"tokens = {tokens} does not fit the given tokenizer, which is of kind {tokenizer.kind}")
    if vocab_size is not None and (tokenizer is not None or tokens == "auto"):
        raise UsageError(f"vocab_size = {vocab_size} for {data} needs tokens = words, chars, bpe, unigram or integers")


def _check_splitting(data: str, valid: str, documents: str) -> None:
    """Refuse a split that cannot be before anything is read."""
    if documents not in source.DOCUMENTS:
        raise UsageError(f"documents = {documents!r} is not a choice{nearest(documents, source.DOCUMENTS)}")
    rule(valid)
    if data.startswith(PREFIX) and (valid != BY_HASH or documents != "auto"):
        raise UsageError(f"{data} makes its own validation part and documents: leave valid and documents out")


def _key(choices: _Choices) -> str:
    """The name of a prepared folder: a hash of everything that its content depends on."""
    if choices.data == source.STDIN:
        raise UsageError("standard input can be read once only: save it to a file to keep prepared shards of it")
    if is_address(choices.data):
        raise UsageError(f"data.cache: {choices.data} is no file by which to know that it is the same; leave it out")
    world, valid = choices.world, choices.valid
    inputs = {
        "format": 5,
        "source": world.spec if world is not None else source.fingerprint(choices.data),
        "valid": valid if world is not None or rule(valid) else source.fingerprint(valid),
        "test": choices.test,
        "documents": choices.documents,
        "tokens": choices.tokens,
        "vocab_size": choices.vocab_size,
        "tokenizer": choices.tokenizer.hash if choices.tokenizer else None,
    }
    if choices.how != OPEN_TEXT:
        inputs["how"] = repr(choices.how)
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]
