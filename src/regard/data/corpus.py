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

from regard.core.config import decode
from regard.data import layout, source, store
from regard.data.settings import BY_HASH
from regard.data.shard import ShardWriter, TokenShard, ends_lines
from regard.data.split import rule
from regard.data.stream import Cutter, Files, Texts, TextStream
from regard.data.tokenizer import TOKENIZERS, Tokenizer, from_dict, train_tokenizer
from regard.data.tokenizer.character import ByteTokenizer, CharacterTokenizer
from regard.data.worlds import PREFIX, text_world
from regard.data.worlds.base import World
from regard.errors import DataError, UsageError, blamed_on, nearest
from regard.storage.arrays import slices

# Characters are the better unit while their table is no larger than that of bytes.
MOST_CHARACTERS = 256
PARTS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)
class Corpus:
    """Data ready for training.

    name     what it was made of, for display.
    samples  how it is meant to be read: "windows" of a long text, or "documents" one by one.
    overlap  validation documents that also occur in the training part; a split by hash has none.
    world    the world it was made by, which knows the best possible loss.
    test     what was held out from training and choosing alike, if that was asked for.
    """

    name: str
    tokenizer: Tokenizer
    train: TokenShard
    valid: TokenShard
    samples: str
    overlap: int
    world: World | None = None
    test: TokenShard | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should be told, a line each. A world draws its parts from the same few documents by design."""
        if self.world is not None or not self.overlap:
            return ()
        held_out = self.valid.n_documents + (self.test.n_documents if self.test else 0)
        return (f"{self.overlap:,} of {held_out:,} validation documents are also in the training part",)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the tokenizer and both shards: what a run must find again to go on."""
        return hashlib.sha256(f"{self.tokenizer.hash} {self.train.hash} {self.valid.hash}".encode()).hexdigest()


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
) -> Corpus:
    """The corpus of a path or of an address such as `world:stories?train=5000`.

    tokens     a kind of tokenizer. auto: the world's own; else chars if the training text has at most 256 different
               ones, else bytes. The tokenizer sees the training part only, unless one is given.
    valid      `hash:FRACTION`, `tail:FRACTION` or a path (see `split`). A world makes its own.
    test       the last part of what is held out that neither training nor choosing sees, 0 for none.
    documents  what is a document (see `source`).
    cache      a folder that keeps prepared shards for the next time. None: in memory.
    seed       of a world whose address has none. The split of a text does not depend on it.
    """
    _check_choices(data, tokens, vocab_size, tokenizer)
    _check_splitting(data, valid, documents)
    world = text_world(data, seed) if data.startswith(PREFIX) else None
    choices = _Choices(data, world, tokens, vocab_size, valid, test, documents, tokenizer)
    if cache is None:
        return _made(choices)
    folder = Path(cache) / _key(choices)
    if not folder.exists():
        store.publish(folder, _stored(_made(choices)))
    return _opened(folder, choices)


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

    @property
    def name(self) -> str:
        if self.world is not None:
            return f"{PREFIX}{self.world.name}"
        return "standard input" if self.data == source.STDIN else Path(self.data).name

    @property
    def samples(self) -> str:
        return "documents" if self.world is not None or self.documents == "line" else "windows"

    @property
    def lines(self) -> bool:
        """Whether the end of a document is the end of a line. What a world makes would be written a line each."""
        return self.world is not None or ends_lines(self.documents)


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
    corpus = Corpus(choices.name, tokenizer, seen, valid, choices.samples, common, choices.world)
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
        stream = Files(choices.data, choices.documents)
        measured = layout.scan(stream.pieces("reading"))
        try:
            return _Text(stream, measured, layout.layout(measured, held_out, choices.test)), None
        except DataError as error:
            raise DataError(f"{choices.data}: {error}") from None
    if choices.world is not None:
        streams = [Texts(choices.world.documents(part)) for part in ("train", "valid")]
    else:
        streams = [Files(path, choices.documents) for path in (choices.data, choices.valid)]
    scans = [layout.scan(stream.pieces("reading")) for stream in streams]
    train = layout.layout(scans[0], None)
    valid = layout.layout(scans[1], None, choices.test, side=layout.VALID)
    return _Text(streams[0], scans[0], train), _Text(streams[1], scans[1], valid)


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
    writers = [ShardWriter(tokenizer, lines=lines) for _ in PARTS]
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
    world, valid = choices.world, choices.valid
    inputs = {
        "format": 3,
        "source": world.spec if world is not None else source.fingerprint(choices.data),
        "valid": valid if world is not None or rule(valid) else source.fingerprint(valid),
        "test": choices.test,
        "documents": choices.documents,
        "tokens": choices.tokens,
        "vocab_size": choices.vocab_size,
        "tokenizer": choices.tokenizer.hash if choices.tokenizer else None,
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]


def _stored(corpus: Corpus) -> store.Store:
    arrays = {}
    facts: dict[str, Any] = {"overlap": corpus.overlap, "tokenizer_hash": corpus.tokenizer.hash}
    for part in PARTS if corpus.test is not None else PARTS[:2]:
        shard: TokenShard = getattr(corpus, part)
        arrays |= {f"{part}.ids": shard.ids, f"{part}.starts": shard.starts}
        facts[part] = {name: getattr(shard, name) for name in ("n_bytes", "n_chars", "n_ends")}
    return store.Store(facts, arrays, {"tokenizer.json": json.dumps(corpus.tokenizer.to_dict(), ensure_ascii=False)})


def _opened(folder: Path, choices: _Choices) -> Corpus:
    stored = store.open_store(folder)
    with blamed_on(folder, DataError, store.advice(folder)):
        tokenizer = from_dict(json.loads(stored.texts["tokenizer.json"]), str(folder / "tokenizer.json"))
        parts = {part: _shard(stored, part, tokenizer.vocab_size) for part in PARTS if part in stored.facts}
        overlap = decode(stored.facts["overlap"], int, "overlap")
        return Corpus(choices.name, tokenizer, **parts, samples=choices.samples, overlap=overlap, world=choices.world)


def _shard(stored: store.Store, part: str, vocab_size: int) -> TokenShard:
    """A part of a prepared text, refused where its documents lie outside of it or its tokens are none."""
    ids, starts = stored.arrays[f"{part}.ids"], stored.arrays[f"{part}.starts"]
    counts = {
        name: decode(stored.facts[part][name], int, f"{part}.{name}") for name in ("n_bytes", "n_chars", "n_ends")
    }
    if starts.dtype != np.int64 or ids.dtype == np.int64 or min(counts.values()) < 0:
        raise UsageError(f"{part}: not the tokens of a text")
    ends = np.append(starts, len(ids))
    if not len(starts) or starts[0] != 0 or (np.diff(ends) < 1).any():
        raise UsageError(f"{part}.starts: not where documents begin")
    if any(int(some.max()) >= vocab_size for (some,) in slices(ids)):
        raise UsageError(f"{part}.ids: tokens that the tokenizer does not have")
    return TokenShard(ids, starts, **counts)
