"""Corpus: a text ready for training, in memory and in a folder that keeps it for the next time."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.config import decode
from regard.data import store
from regard.data.account import Account, account_from
from regard.data.shard import TokenShard
from regard.data.tokenizer import Tokenizer, from_dict
from regard.data.worlds.base import World
from regard.errors import DataError, UsageError, blamed_on
from regard.storage.arrays import slices

MUCH = 1e-3  # of the training tokens
PARTS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)
class Corpus:
    """Data ready for training.

    name     what it was made of, for display.
    samples  how it is meant to be read: "windows" of a long text, or "documents" one by one.
    overlap  validation documents that also occur in the training part; a split by hash has none.
    world    the world it was made by, which knows the best possible loss.
    test     what was held out from training and choosing alike, if that was asked for.
    account  what was understood of the text.
    kept     the folder that keeps it for the next time, where nobody named one.
    """

    name: str
    tokenizer: Tokenizer
    train: TokenShard
    valid: TokenShard
    samples: str
    overlap: int
    world: World | None = None
    test: TokenShard | None = None
    account: Account | None = None
    kept: Path | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should be told, a line each. A world draws its parts from the same few documents by design."""
        told = list[str]()
        if self.world is None and self.overlap:
            held_out = self.valid.n_documents + (self.test.n_documents if self.test else 0)
            told.append(f"{self.overlap:,} of {held_out:,} validation documents are also in the training part")
        if self.kept is not None:
            told.append(f"its tokens are kept for the next time in {self.kept} (data.cache=FOLDER, or none)")
        return tuple(told)

    @property
    def unknown_notes(self) -> tuple[str, ...]:
        """How much of the training part a tokenizer that was made of another text does not know, where that is much."""
        unknown = self.tokenizer.unknown_id
        count = 0 if unknown is None else sum(int((some == unknown).sum()) for (some,) in slices(self.train.ids))
        share = count / max(1, self.train.tokens)
        if share < MUCH:
            return ()
        return (f"{share:.1%} of the training tokens are unknown: the tokenizer has none for what they stand for",)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the tokenizer and both shards: what a run must find again to go on."""
        return hashlib.sha256(f"{self.tokenizer.hash} {self.train.hash} {self.valid.hash}".encode()).hexdigest()


def stored(corpus: Corpus) -> store.Store:
    arrays = {}
    facts: dict[str, Any] = {"overlap": corpus.overlap, "tokenizer_hash": corpus.tokenizer.hash}
    if corpus.account is not None:
        facts["account"] = corpus.account.to_dict()
    for part in PARTS if corpus.test is not None else PARTS[:2]:
        shard: TokenShard = getattr(corpus, part)
        arrays |= {f"{part}.ids": shard.ids, f"{part}.starts": shard.starts}
        if shard.unknown is not None and len(shard.unknown):
            arrays[f"{part}.unknown"] = shard.unknown
        facts[part] = {name: getattr(shard, name) for name in ("n_bytes", "n_chars", "n_ends")}
    return store.Store(facts, arrays, {"tokenizer.json": json.dumps(corpus.tokenizer.to_dict(), ensure_ascii=False)})


def opened(folder: Path, *, is_fresh: bool = False, **facts: Any) -> Corpus:
    """The corpus in a folder. facts: its name, samples and world, which the folder does not tell."""
    stored = store.open_store(folder, is_fresh=is_fresh)
    with blamed_on(folder, DataError, store.advice(folder)):
        tokenizer = from_dict(json.loads(stored.texts["tokenizer.json"]), str(folder / "tokenizer.json"))
        parts = {part: _shard(stored, part, tokenizer.vocab_size) for part in PARTS if part in stored.facts}
        overlap = decode(stored.facts["overlap"], int, "overlap")
        told = decode(stored.facts.get("account", {}), dict[str, Any], "account")
        return Corpus(tokenizer=tokenizer, **parts, overlap=overlap, account=account_from(told), **facts)


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
    return TokenShard(ids, starts, **counts, unknown=stored.arrays.get(f"{part}.unknown"))
