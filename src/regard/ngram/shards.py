"""Counting in shards: blocks of a text counted by workers, and merged by them a range of rows at a time.

Workers read the ids and write their rows under names in one folder; on several machines it is one that all of them see.
The counts are those of `count`, to the last byte: both are sums over tokens, sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.workers import Workers
from regard.errors import DataError
from regard.ngram.counts import (
    ROW_BYTES,
    Counts,
    check_order,
    counted_rows,
    first_places,
    joined,
    merged_rows,
    spilled,
    token_type,
)
from regard.ngram.ranges import Bounds, ranges
from regard.ngram.spill import Stored, landed, shipped, written
from regard.storage.arrays import slices


@dataclass(frozen=True)
class _Counter:
    """Counts the rows that begin in a block of a text."""

    ids: np.ndarray | Stored
    about: dict[str, Any]
    block: int
    place: Path

    def __call__(self, start: int) -> Counts:
        ids = landed(self.ids)
        part = counted_rows(ids, start, min(start + self.block, len(ids)), **self.about)
        return spilled(part, self.place / f"run-{start}")


@dataclass(frozen=True)
class _Merger:
    """Merges the rows of all parts within bounds."""

    parts: list[Counts]
    place: Path

    def __call__(self, task: tuple[int, Bounds]) -> Counts:
        number, bounds = task
        return spilled(merged_rows(self.parts, bounds), self.place / f"range-{number}")


def count_shards(
    ids: np.ndarray,
    order: int,
    workers: Workers,
    *,
    vocab_size: int,
    eos_id: int,
    memory: int,
    place: Path,
    tell: Callable[[float], None] = lambda _: None,
) -> Counts:
    """The counts of a text. memory: bytes that each worker works in, about. place: a folder for what they write."""
    check_order(order)
    if len(ids) == 0:
        raise DataError("there is no text to count: it has no tokens")
    about = {"order": order, "vocab_size": vocab_size, "eos_id": eos_id}
    rows = max(1024, memory // (ROW_BYTES + 3 * order * token_type(vocab_size)().itemsize))
    starts = range(0, len(ids), rows)
    tell(0.0)
    parts: list[Counts] = []
    for part in workers.map(_Counter(_named(ids, place / "ids"), about, rows, place), starts):
        parts.append(part)
        tell(0.6 * len(parts) / len(starts))
    tasks = ranges([part.columns for part in parts], vocab_size, rows)
    pieces = list[Counts]()
    for piece in workers.map(_Merger(parts, place), enumerate(tasks)):
        pieces.append(piece)
        tell(0.6 + 0.3 * len(pieces) / len(tasks))
    whole = joined(map(_taken, pieces), pieces[0], place / "merged")
    return replace(whole, first=first_places(ids, vocab_size))


def _named(ids: np.ndarray, place: Path) -> np.ndarray | Stored:
    """Ids as workers find them: in the file that they are mapped from, or in one that is written here."""
    found = shipped(ids)
    if isinstance(found, Stored):
        return found
    return written(([part] for (part,) in slices(ids)), [ids.dtype], place)[0]


def _taken(piece: Counts) -> Counts:
    """The rows of a piece, whose files are not needed any more."""
    files: Any = (*piece.columns, piece.counts)
    *columns, counts = (file[:] for file in files)
    for file in files:
        Path(file.name).unlink(missing_ok=True)
    return Counts(tuple(columns), counts, piece.vocab_size, piece.eos_id)
