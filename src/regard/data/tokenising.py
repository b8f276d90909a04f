"""Tokenising: the passages of a text to the tokens of its parts, by one process or several, with the same bytes.

The text is read and cut here, in batches that depend on nothing but the text and the tokenizer; workers make tokens of
them, and what comes back is written in the order of the text. A store under way is gone on with after the batches that
it holds: they are read again, and not tokenised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np

from regard.core.workers import Labour, Workers, n_cores
from regard.data import layout
from regard.data.prepared import PARTS
from regard.data.shard import UNKNOWN_SIZE, Cut, ShardWriter, Tokens, batches, encoded, in_memory, token_dtype
from regard.data.tokenizer import Tokenizer, load, save
from regard.errors import CheckpointError, DataError
from regard.storage.growing import BegunFolder
from regard.storage.temporary import temporary_folder

SMALL = 1 << 25  # characters below which processes take longer to start than to work
TOKENIZER, TEMPORARY = "tokenizer.json", "regard-tokenizer-"
HELD_OUT = (layout.VALID, layout.TEST)  # whose bits are asked for
Encode = Callable[[Sequence[Cut]], dict[int, Tokens]]


@dataclass(frozen=True)
class _Encoder:
    """What goes to another process: the tokenizer by its file."""

    path: str
    hash: str

    def __call__(self, batch: Sequence[Cut]) -> dict[int, Tokens]:
        return encoded(_loaded(self.path, self.hash), batch, HELD_OUT)


@lru_cache(maxsize=1)
def _loaded(path: str, hash: str) -> Tokenizer:
    found = load(path)
    if found.hash != hash:
        raise DataError(f"{path} is not the tokenizer that tokenising began with: leave it alone, and start again")
    return found


def tokenised(
    passages: Callable[[], Iterable[tuple[int, str, bool]]],
    tokenizer: Tokenizer,
    *,
    n_chars: int,
    lines: bool,
    labour: Labour,
    begun: BegunFolder | None = None,
) -> list[ShardWriter]:
    """The tokens of every part of a text. begun: the store that they go to; None: memory, or files without a name."""
    writers = _writers(tokenizer, lines, begun)
    done = 0 if begun is None else _taken_up(begun, tokenizer, writers)
    rest = islice(batches(passages(), tokenizer), done, None)
    with _working(tokenizer, labour, n_chars, begun) as (workers, encode):
        for number, found in enumerate(workers.map(encode, rest), done + 1):
            for side, tokens in found.items():
                writers[side].add(tokens)
            if begun is not None and begun.is_due:
                begun.mark(_facts(number, tokenizer, writers))
    return writers


@contextmanager
def _working(
    tokenizer: Tokenizer, labour: Labour, n_chars: int, begun: BegunFolder | None
) -> Iterator[tuple[Workers, Encode]]:
    usual = 1 if tokenizer.works_alone or n_chars < SMALL else n_cores()
    with labour.open(usual) as workers, temporary_folder(None, TEMPORARY) as folder:
        if workers.is_here:
            yield workers, partial(encoded, tokenizer, measured=HELD_OUT)
            return
        place = (folder if begun is None else begun.path) / TOKENIZER
        if begun is None:
            save(tokenizer, place)
        yield workers, _Encoder(str(place.resolve()), tokenizer.hash)


def _writers(tokenizer: Tokenizer, lines: bool, begun: BegunFolder | None) -> list[ShardWriter]:
    if begun is None:
        return [in_memory(tokenizer, lines=lines, measured=side in HELD_OUT) for side in range(len(PARTS))]
    kinds = {"ids": token_dtype(tokenizer), "starts": np.dtype("<i8"), "unknown": UNKNOWN_SIZE}
    begun.open_arrays({f"{part}.{name}": kind for part in PARTS for name, kind in kinds.items()})
    files = begun.files
    return [
        ShardWriter(
            files[f"{part}.ids"],
            files[f"{part}.starts"],
            files[f"{part}.unknown"] if side in HELD_OUT else None,
            lines=lines,
        )
        for side, part in enumerate(PARTS)
    ]


def _facts(number: int, tokenizer: Tokenizer, writers: Sequence[ShardWriter]) -> dict[str, Any]:
    sizes = [[writer.n_bytes, writer.n_chars] for writer in writers]
    return {"batches": number, "tokenizer": tokenizer.hash, "sizes": sizes}


def _taken_up(begun: BegunFolder, tokenizer: Tokenizer, writers: Sequence[ShardWriter]) -> int:
    """The batches that a store under way holds, as its log says."""
    done: Any = begun.done
    if done is None:
        save(tokenizer, begun.path / TOKENIZER)
        begun.mark(_facts(0, tokenizer, writers))
        return 0
    for writer, (n_bytes, n_chars) in zip(writers, done["sizes"], strict=True):
        writer.n_bytes, writer.n_chars = int(n_bytes), int(n_chars)
    return int(done["batches"])


def kept_tokenizer(begun: BegunFolder) -> Tokenizer | None:
    """The tokenizer that a store under way was begun with; None where it cannot be had, and all begins anew."""
    found = None
    with suppress(CheckpointError):
        found = None if begun.done is None else load(begun.path / TOKENIZER)
    if found is not None and begun.done is not None and found.hash == begun.done.get("tokenizer"):
        return found
    begun.forget()
    return None
