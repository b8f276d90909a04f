"""Rows: examples of a task, ready to be put into batches.

Every kind of data says how large each of its rows is and what a batch of some of them holds; the order in which they
come is written here once. As everywhere a batch is a pure function of (seed, step).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from regard.data.batch import NOT_COUNTED, Batch
from regard.data.bucket import Buckets
from regard.data.ragged import Ragged
from regard.layers.picture import as_input
from regard.storage.arrays import slices


class Rows(Protocol):
    """Examples by number."""

    @property
    def sizes(self) -> np.ndarray:
        """How long each is, (n,), or each of its sides, (n, sides): batches join examples of similar length."""
        ...

    @property
    def n_targets(self) -> int:
        """Targets that count, in all of them."""
        ...

    @property
    def hash(self) -> str:
        """SHA-256 of everything in them."""
        ...

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        """The examples `rows` side by side; `numbers` are their global sample numbers."""
        ...


class Shuffled:
    """Batches of rows for training, for ever: an epoch is every row once, in an order of its own."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows = rows
        self.buckets = Buckets(rows.sizes, seed)

    @property
    def samples_per_epoch(self) -> int:
        return len(self.rows.sizes)

    def batch(self, step: int, batch_size: int) -> Batch:
        return self.rows.batch_of(*self.buckets.batch(step, batch_size))


def once(rows: Rows, batch_size: int) -> Iterator[Batch]:
    """Every row once, longest first."""
    # By the last side, then the one before it: what is written costs more than what is read.
    order = np.lexsort(-rows.sizes.reshape(len(rows.sizes), -1).T)
    for first in range(0, len(order), batch_size):
        chosen = order[first : first + batch_size]
        yield rows.batch_of(chosen, chosen)


@dataclass(frozen=True, eq=False)
class Some:
    """Those of the rows whose numbers are in `kept`."""

    rows: Rows
    kept: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return self.rows.sizes[self.kept]

    @property
    def n_targets(self) -> int:
        return sum(batch.n_counted for batch in once(self, 256))

    @property
    def hash(self) -> str:
        return self.rows.hash + hashlib.sha256(self.kept.astype(np.int64).tobytes()).hexdigest()

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        return self.rows.batch_of(self.kept[rows], numbers)


@dataclass(frozen=True, eq=False)
class PairRows:
    """source: ids that are read, each with its `<eos>`. target: ids that are written, without.

    tokens = <start> y_1 .. y_n, targets = y_1 .. y_n <eos>

    start_id  of a text that is written; None for `eos_id`.
    """

    source: Ragged
    target: Ragged
    eos_id: int
    start_id: int | None = None

    @property
    def sizes(self) -> np.ndarray:
        return np.stack([self.source.sizes, self.target.sizes], 1)

    @property
    def n_targets(self) -> int:
        return int(self.target.sizes.sum()) + len(self.target)

    @property
    def hash(self) -> str:
        return self.source.hash + self.target.hash

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        source, source_lengths = self.source.padded(rows, 0)
        tokens, targets, lengths = written(self.target, rows, self.eos_id, self.start_id)
        return Batch(tokens, targets, lengths, numbers.tolist(), source=source, source_lengths=source_lengths)


@dataclass(frozen=True, eq=False)
class CaptionRows:
    """pictures (n, H, W, 3): unsigned bytes, a quarter of what the numbers of a network would take. target: ids."""

    pictures: np.ndarray
    target: Ragged
    eos_id: int

    @property
    def sizes(self) -> np.ndarray:
        return self.target.sizes

    @property
    def n_targets(self) -> int:
        return int(self.target.sizes.sum()) + len(self.target)

    @property
    def hash(self) -> str:
        return hashlib.sha256(np.ascontiguousarray(self.pictures).data).hexdigest() + self.target.hash

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        tokens, targets, lengths = written(self.target, rows, self.eos_id)
        source = as_input(torch.from_numpy(self.pictures[rows]))
        return Batch(tokens, targets, lengths, numbers.tolist(), source=source)


def written(
    target: Ragged, rows: np.ndarray, eos_id: int, start_id: int | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What a decoder reads and writes: (<start> y_1 .. y_n), (y_1 .. y_n <eos>), and how long both are."""
    padded, sizes = target.padded(rows, eos_id)
    end = torch.full((len(padded), 1), eos_id)
    tokens = torch.cat([end if start_id is None else torch.full_like(end, start_id), padded], 1)
    targets = torch.cat([padded, end], 1)
    targets[torch.arange(targets.shape[1]) > sizes[:, None]] = NOT_COUNTED
    return tokens, targets, sizes + 1


@dataclass(frozen=True, eq=False)
class LabelRows:
    """text: ids, each with its `<eos>`. labels (n,): the class of each."""

    text: Ragged
    labels: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return self.text.sizes

    @property
    def n_targets(self) -> int:
        return len(self.labels)

    @property
    def hash(self) -> str:
        return self.text.hash + Ragged(self.labels, np.zeros(1, np.int64)).hash

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        tokens, lengths = self.text.padded(rows, 0)
        return Batch(tokens, torch.from_numpy(self.labels[rows].astype(np.int64)), lengths, numbers.tolist())


@dataclass(frozen=True, eq=False)
class TagRows:
    """text: words, each an id and its spelling, or pieces of words. tags: the class of each, -100 where it has none."""

    text: Ragged
    tags: Ragged

    @property
    def sizes(self) -> np.ndarray:
        return self.text.sizes

    @property
    def n_targets(self) -> int:
        return int((self.tags.values != NOT_COUNTED).sum())

    @property
    def hash(self) -> str:
        return self.text.hash + self.tags.hash

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        tokens, lengths = self.text.padded(rows, 0)
        targets, _ = self.tags.padded(rows, NOT_COUNTED)
        return Batch(tokens, targets, lengths, numbers.tolist())


@dataclass(frozen=True, eq=False)
class SeriesRows:
    """values (n,): the target, scaled. known (n, K): what is known ahead, scaled, the calendar last.

    origins (m,): the first positions of the horizons. history, horizon: steps before and from each of them on.
    past (n, P): what was measured beside the target, of which no window sees more than its history.
    Several series stand one after the other, and no window has steps of two. All may be mapped.
    """

    values: np.ndarray
    known: np.ndarray
    origins: np.ndarray
    history: int
    horizon: int
    past: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def sizes(self) -> np.ndarray:
        return np.full(len(self.origins), self.history + self.horizon)

    @property
    def n_targets(self) -> int:
        return len(self.origins) * self.horizon

    @property
    def hash(self) -> str:
        digest = hashlib.sha256(f"{self.history} {self.horizon}".encode())
        for part in (self.values, self.known, self.origins, *([self.past] if self.past.size else [])):
            for (some,) in slices(part):
                digest.update(np.ascontiguousarray(some).data)
        return digest.hexdigest()

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        origins = self.origins[rows]
        before = origins[:, None] + np.arange(-self.history, 0)
        after = origins[:, None] + np.arange(self.horizon)
        parts = [self.values[before][..., None], self.known[before], *([self.past[before]] if self.past.size else [])]
        source = np.concatenate(parts, -1)
        return Batch(
            torch.from_numpy(self.known[after].astype(np.float32)),
            torch.from_numpy(self.values[after].astype(np.float32)),
            torch.full((len(rows),), self.horizon),
            numbers.tolist(),
            source=torch.from_numpy(source.astype(np.float32)),
        )
