"""From a file, a folder or a world to token shards for training and validation."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from regard.core.progress import stage
from regard.core.workers import AS_USUAL, Labour
from regard.data import layout, source, store
from regard.data.account import Account
from regard.data.choices import OPEN_TEXT, TextChoices
from regard.data.measured import MeasuredText
from regard.data.prepared import Corpus, opened, stored
from regard.data.settings import BY_HASH
from regard.data.shard import ends_lines
from regard.data.split import rule
from regard.data.stream import Texts, TextStream
from regard.data.tabular import is_address, is_table
from regard.data.text_source import TableTexts, text_stream
from regard.data.tokenising import kept_tokenizer, tokenised
from regard.data.tokenizer import TOKENIZERS, Tokenizer, train_tokenizer
from regard.data.tokenizer.character import ByteTokenizer, CharacterTokenizer
from regard.data.worlds import PREFIX, text_world
from regard.data.worlds.base import World
from regard.errors import DataError, UsageError, nearest
from regard.storage.growing import BegunFolder, begun_folder

SAMPLE = 1 << 26
# Bytes of files from which on what is prepared of them is written by and by, and kept even where nobody says so.
LARGE, VERY_LARGE = 1 << 26, 1 << 28
NEVER = "none"
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
    sample: int = SAMPLE,
    labour: Labour = AS_USUAL,
) -> Corpus:
    """The corpus of a path or of an address such as `world:stories?train=5000`.

    tokens     a kind of tokenizer. auto: the world's own; else chars if the training text has at most 256 different
               ones, else bytes. The tokenizer sees the training part only, unless one is given.
    valid      `hash:FRACTION`, `tail:FRACTION` or a path (see `split`). A world makes its own.
    test       the last part of what is held out that neither training nor choosing sees, 0 for none.
    documents  what is a document (see `source`).
    cache      a folder that keeps prepared shards for the next time. None: memory, or of very large files the user's
               own folder of such (`usual_cache`); "none": never a folder.
    seed       of a world whose address has none. The split of a text does not depend on it.
    how        how files are read: their form, encoding, and the column of a table.
    sample     characters of the training part, here and there, from which words and subwords are learnt; all of them
               where it has fewer, and other kinds see all in any case.
    labour     who tokenises; the result does not depend on it.
    """
    _check_choices(data, tokens, vocab_size, tokenizer)
    _check_splitting(data, valid, documents)
    world = text_world(data, seed) if data.startswith(PREFIX) else None
    choices = _Choices(data, world, tokens, vocab_size, valid, test, documents, tokenizer, how, sample, labour)
    is_usual = cache is None and choices.n_bytes >= VERY_LARGE
    if (cache is None and not is_usual) or cache == NEVER:
        return _made(choices)
    folder = (usual_cache() if cache is None else Path(cache)) / _key(choices)
    is_fresh = not folder.exists() and _publish(choices, folder)
    corpus = opened(folder, is_fresh=is_fresh, name=choices.name, samples=choices.samples, world=choices.world)
    return replace(corpus, kept=folder) if is_usual else corpus


def usual_cache() -> Path:
    """Where the tokens of very large texts are kept when nobody says where."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "regard" / "data"


def _publish(choices: _Choices, folder: Path) -> bool:
    """Prepare a text in a folder. Large ones are written there by and by, and gone on with when they were left."""
    if choices.n_bytes < LARGE:
        store.publish(folder, stored(_made(choices)))
        return False
    with stage("waiting for another process") as advance, begun_folder(folder, lambda: advance(0)) as begun:
        if begun is None:
            return False
        try:
            made = stored(_made(choices, begun))
        except KeyboardInterrupt:
            if begun.done is None:
                raise
            raise KeyboardInterrupt(f"the same command goes on from here, with what is in {begun.path}") from None
        begun.finish(folder, made.arrays, store.text_files(made))
        return True


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
    sample: int = SAMPLE
    labour: Labour = AS_USUAL

    @property
    def name(self) -> str:
        if self.world is not None:
            return f"{PREFIX}{self.world.name}"
        return "standard input" if self.data == source.STDIN else Path(self.data).name

    @cached_property
    def n_bytes(self) -> int:
        """Of the files; 0 of what is none."""
        return 0 if self.world is not None else source.n_bytes(self.data)

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


def _made(choices: _Choices, begun: BegunFolder | None = None) -> Corpus:
    """begun: where the arrays are to be; None: in memory, or in files without a name."""
    train, held = _measured(choices)
    kept = None if begun is None else kept_tokenizer(begun)
    tokenizer = choices.tokenizer or kept or _trained(train, choices)
    texts = [train, held] if held else [train]
    writers = tokenised(
        lambda: chain.from_iterable(one.parted("tokenising") for one in texts),
        tokenizer,
        n_chars=sum(one.n_chars for one in texts),
        lines=choices.lines,
        labour=choices.labour,
        begun=begun,
    )
    seen, valid, test = (writer.shard() for writer in writers)
    for part, shard in (("training", seen), ("validation", valid)):
        if shard.tokens == shard.n_documents:
            raise DataError(f"the {part} part of {choices.data} holds no tokens; the smallest amount is one")
    # A rule leaves no document on two sides; what was given as validation text may hold some of the training text.
    common = layout.shared(held.scan.documents, train.scan.documents) if held else 0
    told = _account(choices, train, held, _n_sampled(choices, tokenizer, train))
    corpus = Corpus(choices.name, tokenizer, seen, valid, choices.samples, common, choices.world, account=told)
    return replace(corpus, test=test) if choices.test else corpus


def _measured(choices: _Choices) -> tuple[MeasuredText, MeasuredText | None]:
    """What is dealt out to training and, where it is a text of its own, what is held out."""
    held_out = rule(choices.valid)
    if choices.world is None and held_out is not None:
        stream = choices.stream(choices.data)
        measured = layout.scan(stream.pieces("reading"))
        try:
            return MeasuredText(stream, measured, layout.layout(measured, held_out, choices.test)), None
        except DataError as error:
            raise DataError(f"{choices.data}: {error}") from None
    if choices.world is not None:
        streams = [Texts(choices.world.documents(part)) for part in ("train", "valid")]
    else:
        streams = [choices.stream(path) for path in (choices.data, choices.valid)]
    scans = [layout.scan(stream.pieces("reading")) for stream in streams]
    train = layout.layout(scans[0], None)
    valid = layout.layout(scans[1], None, choices.test, side=layout.VALID)
    return MeasuredText(streams[0], scans[0], train), MeasuredText(streams[1], scans[1], valid)


def survey(data: str, settings: Any, seed: int = 0) -> Account:
    """What is understood of a text, which is read and measured and not turned into tokens.

    settings  with valid, test, documents and texts, as those of a run's data.
    """
    _check_splitting(data, settings.valid, settings.documents)
    world = text_world(data, seed) if data.startswith(PREFIX) else None
    kept = settings.valid, settings.test, settings.documents, None, settings.texts
    choices = _Choices(data, world, "auto", None, *kept)
    return _account(choices, *_measured(choices))


def _account(choices: _Choices, train: MeasuredText, held: MeasuredText | None, sampled: int = 0) -> Account:
    """Characters of each part, and how the text begins. sampled: those that a tokenizer learnt from, of more."""
    sizes = train.sizes if held is None else train.sizes + held.sizes
    told = train.stream.account if isinstance(train.stream, TableTexts) else Account(form=_form(choices))
    begins = next(train.stream.pieces("reading")).text[:BEGINNING]
    facts = {"documents": len(train.scan.documents)}
    if sampled:
        facts["characters that taught the tokens"] = sampled
    unit = {"unit": "characters", "read": int(sizes.sum()), "facts": facts}
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


def _trained(train: MeasuredText, choices: _Choices) -> Tokenizer:
    """A tokenizer made of the training part."""
    tokens, world = choices.tokens, choices.world
    if tokens == "auto" and world is None:
        return CharacterTokenizer.of_few(train.training_texts(sees_words=False), MOST_CHARACTERS) or ByteTokenizer()
    tokens = world.tokens if world is not None and tokens == "auto" else tokens
    kind = TOKENIZERS[tokens]
    texts = train.training_texts(kind.sees_words, choices.sample if kind.learns_from_sample else None)
    if world is not None:
        # A small sample may miss words of the world; its own list has them all.
        between = " " if world.tokens == "words" else ""
        texts = chain([between.join(world.vocabulary)], texts)
    return train_tokenizer(tokens, texts, vocab_size=choices.vocab_size)


def _n_sampled(choices: _Choices, tokenizer: Tokenizer, train: MeasuredText) -> int:
    """About how many characters a tokenizer learnt from, where they were not all."""
    has_learnt = choices.tokenizer is None and tokenizer.learns_from_sample
    return choices.sample if has_learnt and train.sizes[layout.TRAIN] > choices.sample else 0


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
        "format": 6,
        "source": world.spec if world is not None else source.fingerprint(choices.data),
        "valid": valid if world is not None or rule(valid) else source.fingerprint(valid),
        "test": choices.test,
        "documents": choices.documents,
        "tokens": choices.tokens,
        "vocab_size": choices.vocab_size,
        "tokenizer": choices.tokenizer.hash if choices.tokenizer else None,
        "sample": choices.sample,
    }
    if choices.how != OPEN_TEXT:
        inputs["how"] = repr(choices.how)
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]
