"""TokenShard: many documents as one array of token ids."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.data.decoding import PIECE
from regard.data.stream import Cutter
from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.tokenizer import utf8
from regard.storage.arrays import Spool, sha256


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


class ShardWriter:
    """A shard that grows document by document. Ids take two bytes when the vocabulary allows.

    lines    whether the end of each document is the end of a line, and counts as a character (see `ends_lines`).
    measured whether bits will be asked for, so that what unknown tokens stand for is counted.
    """

    def __init__(self, tokenizer: Tokenizer, *, lines: bool = False, measured: bool = True) -> None:
        self.tokenizer, self.lines = tokenizer, lines
        self.unknown = Spool(np.dtype("<u4")) if measured else None
        dtype = np.dtype("<u2" if tokenizer.vocab_size <= 1 << 16 else "<u4")
        self.ids = Spool(dtype)
        self.starts = array("q")
        self.n_bytes = self.n_chars = 0
        self._end = np.array([tokenizer.eos_id], dtype=dtype)
        self._is_open = False
        self._cutter = Cutter(sys.maxsize if tokenizer.sees_texts else PIECE) if tokenizer.sees_words else None

    def add(self, text: str, ends: bool) -> None:
        """A piece of a document, cut anywhere; `ends` where it is the last."""
        if not self._is_open:
            self.starts.append(self.ids.size)
        self._is_open = not ends
        self.n_bytes += len(text) if text.isascii() else len(utf8(text))
        self.n_chars += len(text)
        if self._cutter is not None:
            text = self._cutter.add(text, ends)
        if text:
            ids = self.tokenizer.encode(text)
            self.ids.append(ids)
            if self.unknown is not None and (ids == self.tokenizer.unknown_id).any():
                self.unknown.append(self.tokenizer.unknown_sizes(text))
        if ends:
            self.ids.append(self._end)

    def shard(self) -> TokenShard:
        starts = np.frombuffer(self.starts, dtype="<i8")
        ends = len(starts) if self.lines else 0
        unknown = None if self.unknown is None else self.unknown.array()
        return TokenShard(self.ids.array(), starts, self.n_bytes + ends, self.n_chars + ends, ends, unknown)


def make_shard(documents: Iterable[str], tokenizer: Tokenizer, *, lines: bool = False) -> TokenShard:
    """Documents encoded and laid end to end; `lines` as of a `ShardWriter`."""
    return stream_shard(((document, True) for document in documents), tokenizer, lines=lines)


def stream_shard(pieces: Iterable[tuple[str, bool]], tokenizer: Tokenizer, *, lines: bool = False) -> TokenShard:
    """The same of documents that come in pieces, each with whether it is the last of its document."""
    writer = ShardWriter(tokenizer, lines=lines)
    for text, ends in pieces:
        writer.add(text, ends)
    return writer.shard()


def ends_lines(documents: str) -> bool:
    """Whether documents of this kind (see `source`) end where a line does."""
    return documents in ("line", "blank")
