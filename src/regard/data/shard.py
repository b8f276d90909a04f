"""TokenShard: many documents as one array of token ids.

    pieces of documents -> batches (cut where no tokenizer can see it) -> Tokens of a batch -> the arrays of a shard

What a batch becomes depends on nothing but the batch, so that any process may make it (`tokenising`).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from regard.data.decoding import PIECE
from regard.data.stream import Cutter
from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.tokenizer import utf8
from regard.storage.arrays import Spool, sha256

BATCH = 1 << 20  # characters that are tokenised together
UNKNOWN_SIZE = np.dtype("<u4")
MANY = 1 << 14  # pieces of a batch: short ones take more room than their characters


@dataclass(frozen=True, eq=False)
class TokenShard:
    """Documents end to end, each followed by `<eos>`.

    ids      (N,) uint16 or uint32, in memory or mapped from a file.
    starts   (n_documents,) int64, where each document begins.
    n_bytes  size of what the tokens stand for in UTF-8, for bits per byte; n_chars likewise in characters.
    n_ends   line ends among both: documents whose `<eos>` stands for the end of a line.
    unknown  (n_unknown,) uint32, bytes that each unknown token stands for; None where nobody counted them.

    Where documents are lines or paragraphs a line end is predicted as `<eos>` and counts as one character and one byte,
    though it be two, or followed by a blank line, or lacking after the last line of a file. The `<eos>` after a whole
    file stands for nothing in it and counts as none.

    Read as a ring: the token before the first one is the last, an `<eos>`, so every document is preceded by one.
    """

    ids: np.ndarray
    starts: np.ndarray
    n_bytes: int
    n_chars: int
    n_ends: int = 0
    unknown: np.ndarray | None = None

    @property
    def tokens(self) -> int:
        """The number of tokens, those of `<eos>` included."""
        return len(self.ids)

    @property
    def n_documents(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> np.ndarray:
        """Tokens of each document with its `<eos>`."""
        return np.diff(self.starts, append=self.tokens)

    def document(self, index: int) -> np.ndarray:
        """The ids of one document without its `<eos>`."""
        stop = self.starts[index + 1] if index + 1 < self.n_documents else self.tokens
        return np.asarray(self.ids[self.starts[index] : stop - 1])

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the documents in the shard. How their ends are counted is no part of them."""
        sizes = f"{self.n_bytes - self.n_ends} {self.n_chars - self.n_ends}"
        facts = f"{self.ids.dtype.str} {self.tokens} {sizes}\n"
        digest = sha256(self.ids, facts.encode())
        digest.update(np.ascontiguousarray(self.starts).data)
        return digest.hexdigest()


class Cut(NamedTuple):
    """A piece of a document that is tokenised by itself as within its document; whether it is the first and the last.

    side  the shard that it belongs to.
    """

    side: int
    text: str
    begins: bool
    ends: bool


@dataclass(frozen=True)
class Tokens:
    """What some pieces of a side became: ids, where documents begin among them, and the size of the text.

    unknown  bytes that each unknown token stands for, where somebody asked.
    """

    ids: np.ndarray
    starts: np.ndarray
    n_bytes: int
    n_chars: int
    unknown: np.ndarray


class Growing(Protocol):
    """An array that grows at its end: a `Spool`, or a file of a store under way."""

    size: int

    def append(self, values: np.ndarray) -> None: ...
    def array(self) -> np.ndarray: ...


def batches(passages: Iterable[tuple[int, str, bool]], tokenizer: Tokenizer) -> Iterator[list[Cut]]:
    """Pieces of documents, each with its side and whether it is the last one, in lists of about BATCH characters."""
    cutter = Cutter(sys.maxsize if tokenizer.sees_texts else PIECE) if tokenizer.sees_words else None
    batch, held, begins = list[Cut](), 0, True
    for side, text, ends in passages:
        ready = text if cutter is None else cutter.add(text, ends)
        if ready or ends:
            batch.append(Cut(side, ready, begins, ends))
            held, begins = held + len(ready), ends
        if held >= BATCH or len(batch) >= MANY:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def token_dtype(tokenizer: Tokenizer) -> np.dtype:
    """Of ids: two bytes when the vocabulary allows."""
    return np.dtype("<u2" if tokenizer.vocab_size <= 1 << 16 else "<u4")


def encoded(tokenizer: Tokenizer, batch: Sequence[Cut], measured: Collection[int]) -> dict[int, Tokens]:
    """The tokens of a batch, by side. measured: sides of which what unknown tokens stand for is counted."""
    return {
        side: _tokens(tokenizer, [cut for cut in batch if cut.side == side], side in measured)
        for side in sorted({cut.side for cut in batch})
    }


def _tokens(tokenizer: Tokenizer, cuts: Sequence[Cut], is_measured: bool) -> Tokens:
    ids, sizes = tokenizer.encode_all([cut.text for cut in cuts])
    unknown = [np.zeros(0, np.int64)]
    if is_measured and tokenizer.unknown_id is not None:
        places = np.flatnonzero(ids == tokenizer.unknown_id)
        holders = np.unique(np.cumsum(sizes).searchsorted(places, side="right"))
        unknown += [tokenizer.unknown_sizes(cuts[number].text) for number in holders.tolist()]
    ends = np.fromiter((cut.ends for cut in cuts), bool, len(cuts))
    begins = np.fromiter((cut.begins for cut in cuts), bool, len(cuts))
    stops = np.cumsum(sizes + ends)
    laid = np.empty(int(stops[-1]), token_dtype(tokenizer))
    is_text = np.ones(len(laid), bool)
    is_text[stops[ends] - 1] = False
    laid[is_text], laid[~is_text] = ids, tokenizer.eos_id
    n_bytes = sum(len(cut.text) if cut.text.isascii() else len(utf8(cut.text)) for cut in cuts)
    n_chars = sum(len(cut.text) for cut in cuts)
    return Tokens(laid, (stops - sizes - ends)[begins], n_bytes, n_chars, np.concatenate(unknown))


class ShardWriter:
    """A shard that grows by the tokens of batches.

    unknown  for the bytes that unknown tokens stand for; None where bits will not be asked for.
    lines    whether the end of each document is the end of a line, and counts as a character (see `ends_lines`).
    """

    def __init__(self, ids: Growing, starts: Growing, unknown: Growing | None, *, lines: bool = False) -> None:
        self.ids, self.starts, self.unknown, self.lines = ids, starts, unknown, lines
        self.n_bytes = self.n_chars = 0

    def add(self, tokens: Tokens) -> None:
        self.starts.append(tokens.starts + self.ids.size)
        self.ids.append(tokens.ids)
        if self.unknown is not None:
            self.unknown.append(tokens.unknown)
        self.n_bytes += tokens.n_bytes
        self.n_chars += tokens.n_chars

    def shard(self) -> TokenShard:
        starts = self.starts.array()
        ends = len(starts) if self.lines else 0
        unknown = None if self.unknown is None else self.unknown.array()
        return TokenShard(self.ids.array(), starts, self.n_bytes + ends, self.n_chars + ends, ends, unknown)


def in_memory(tokenizer: Tokenizer, *, lines: bool = False, measured: bool = True) -> ShardWriter:
    """A shard that is in memory, or in files without a name once it is large."""
    unknown = Spool(UNKNOWN_SIZE) if measured else None
    return ShardWriter(Spool(token_dtype(tokenizer)), Spool(np.dtype("<i8")), unknown, lines=lines)


def make_shard(documents: Iterable[str], tokenizer: Tokenizer, *, lines: bool = False) -> TokenShard:
    """Documents encoded and laid end to end; `lines` as of a `ShardWriter`."""
    return stream_shard(((document, True) for document in documents), tokenizer, lines=lines)


def stream_shard(pieces: Iterable[tuple[str, bool]], tokenizer: Tokenizer, *, lines: bool = False) -> TokenShard:
    """The same of documents that come in pieces, each with whether it is the last of its document."""
    writer = in_memory(tokenizer, lines=lines)
    for batch in batches(((0, text, ends) for text, ends in pieces), tokenizer):
        writer.add(encoded(tokenizer, batch, (0,))[0])
    return writer.shard()


def ends_lines(documents: str) -> bool:
    """Whether documents of this kind (see `source`) end where a line does."""
    return documents in ("line", "blank")
