"""Passages: rows of a text for models that look both ways, with an `<eos>` on each side.

<eos> x_1 .. x_n <eos>       a document, or n tokens of a long text
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

from regard.data.batch import Batch, phases, stretches
from regard.data.mask import Masking
from regard.data.shard import TokenShard

FRAME = 2  # tokens of a row that are no text


@dataclass(frozen=True, eq=False)
class Passages:
    """Stretches of a shard.

    starts, lengths  of the text of each, without its frame.
    rolls            stretches begin elsewhere in each epoch, so that a border falls on other words.
    """

    shard: TokenShard
    starts: np.ndarray
    lengths: np.ndarray
    rolls: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> np.ndarray:
        """The ids of one row with its frame."""
        return self.padded(np.array([row]), np.zeros(1, dtype=np.int64), 0)[0]

    @property
    def sizes(self) -> np.ndarray:
        return self.lengths + FRAME

    def padded(self, rows: np.ndarray, epochs: np.ndarray, seed: int) -> np.ndarray:
        """Rows side by side, (B, T) int64, `<eos>` around and after the text of each."""
        starts, lengths = self.starts[rows], self.lengths[rows]
        if self.rolls:
            starts = starts + phases(epochs, seed, self.shard.tokens)
        places = np.arange(int(lengths.max()) + FRAME) - 1
        read = self.shard.ids[(starts[:, None] + places) % self.shard.tokens].astype(np.int64)
        return np.where((places >= 0) & (places < lengths[:, None]), read, int(self.shard.ids[-1]))


def cut(shard: TokenShard, length: int, samples: str, *, rolls: bool = False) -> Passages:
    """The "documents" of a shard, or "windows" of it as one text, in rows of at most `length` tokens in all."""
    if samples == "documents":
        starts, lengths, _ = stretches(shard.starts, shard.sizes - 1, length - FRAME, None)
        return Passages(shard, starts[lengths > 0], lengths[lengths > 0])
    starts, lengths, _ = stretches(np.zeros(1, dtype=np.int64), np.array([shard.tokens]), length - FRAME, None)
    return Passages(shard, starts, lengths, rolls)


@dataclass(frozen=True, eq=False)
class MaskedRows:
    """Passages with some tokens hidden: what is read, and -100 as the target of all that is not hidden."""

    passages: Passages
    masking: Masking
    seed: int

    @property
    def sizes(self) -> np.ndarray:
        return self.passages.sizes

    @property
    def n_targets(self) -> int:
        """Of one epoch, masked as the first."""
        numbers = np.arange(len(self.passages))
        return sum(self.batch_of(part, part).n_counted for part in np.array_split(numbers, -(-len(numbers) // 256)))

    @property
    def hash(self) -> str:
        digest = hashlib.sha256(f"{self.passages.shard.hash} {self.masking.whole_words} ".encode())
        digest.update(np.ascontiguousarray(self.sizes).data)
        return digest.hexdigest()

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        tokens = self.passages.padded(rows, numbers // len(self.passages), self.seed)
        sizes = self.sizes[rows]
        read, targets = self.masking.hide(tokens, sizes, numbers, self.seed)
        lengths = torch.from_numpy(sizes.astype(np.int64))
        return Batch(torch.from_numpy(read), torch.from_numpy(targets), lengths, numbers.tolist())
