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
    n_bytes  size of the original text in UTF-8, for bits per byte; n_chars likewise in characters.

    Read as a ring: the token before the first one is the last, an `<eos>`, so every document is preceded by one.
    """

    ids: np.ndarray
    starts: np.ndarray
    n_bytes: int
    n_chars: int

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
        """SHA-256 of everything in the shard."""
        digest = hashlib.sha256(f"{self.ids.dtype.str} {self.tokens} {self.n_bytes} {self.n_chars}\n".encode())
        digest.update(np.ascontiguousarray(self.ids).data)
        digest.update(np.ascontiguousarray(self.starts).data)
        return digest.hexdigest()


def make_shard(documents: Iterable[str], tokenizer: Tokenizer) -> TokenShard:
    """Documents encoded and laid end to end. Ids take two bytes when the vocabulary allows."""
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
    return TokenShard(np.concatenate(parts), np.array(starts, dtype="<i8"), n_bytes, n_chars)
