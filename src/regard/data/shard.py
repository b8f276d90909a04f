"""TokenShard: many documents as one array of token ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.data.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class TokenShard:
    """Documents end to end, each followed by `<eos>`.

    ids      (N,) uint16 or uint32, in memory or mapped from a file.
    starts   (n_documents,) int64, where each document begins.
    n_bytes  size of what the tokens stand for in UTF-8, for bits per byte; n_chars likewise in characters.
    n_ends   line ends among both: documents whose `<eos>` stands for the end of a line.

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
        digest = hashlib.sha256(f"{self.ids.dtype.str} {self.tokens} {sizes}\n".encode())
        digest.update(np.ascontiguousarray(self.ids).data)
        digest.update(np.ascontiguousarray(self.starts).data)
        return digest.hexdigest()


def make_shard(documents: Iterable[str], tokenizer: Tokenizer, *, lines: bool = False) -> TokenShard:
    """Documents encoded and laid end to end. Ids take two bytes when the vocabulary allows.

    lines  whether the end of each document is the end of a line, and counts as a character (see `ends_lines`).
    """
    dtype = np.dtype("<u2" if tokenizer.vocab_size <= 1 << 16 else "<u4")
    end = np.array([tokenizer.eos_id], dtype=dtype)
    parts = [end[:0]]
    starts = []
    n_tokens = n_bytes = n_chars = 0
    for document in documents:
        ids = tokenizer.encode(document).astype(dtype)
        parts += [ids, end]
        starts.append(n_tokens)
        n_tokens += len(ids) + 1
        n_bytes += len(document.encode())
        n_chars += len(document)
    ends = len(starts) if lines else 0
    return TokenShard(np.concatenate(parts), np.array(starts, dtype="<i8"), n_bytes + ends, n_chars + ends, ends)


def ends_lines(documents: str) -> bool:
    """Whether documents of this kind (see `source`) end where a line does."""
    return documents in ("line", "blank")
