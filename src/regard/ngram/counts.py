"""N-gram counts of a text, by sorting; of a text larger than memory, by sorted runs on disk that are merged by key.

A row is what begins at one token: that token and the order - 1 after it, cut at the end of its sentence. One sorted
table of distinct rows holds the counts of every order: an n-gram's count is the sum over the rows that begin with it.

    text    <s> a b </s>          rows of order 3    <s> a b,  a b </s>,  b </s> .,  </s> . .

The table is a sum over tokens, so the counts of the parts of a text, merged by key, are the counts of the text. That
is how text beyond memory, beyond one process or arriving later is counted.

Glossary
columns   the order columns of the table, each token + 1; 0 after the end of a sentence
<eos>     ends a sentence and, as the first of a row, stands for the beginning of the next one
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from regard.core.waiting import threads
from regard.errors import DataError, UsageError
from regard.ngram.ranges import ranges
from regard.ngram.spill import PREFIX, spill_folder, written
from regard.storage.arrays import SLICE, release
from regard.storage.temporary import remove_abandoned

LARGEST_ORDER = 32
DEFAULT_MEMORY = 1 << 30
# Bytes that counting holds for a row beside its tokens: the sorted order, sums, masks and copies.
ROW_BYTES = 48
WORKERS = 2
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Counts:
    """Distinct rows in ascending order and how often each occurred.

    columns     one array of equal length for each place in a row, in memory or mapped from a file; of a run that was
                spilled, and is only there to be merged, a file of which slices are read.
    counts      (R,) int64.
    vocab_size  tokens there are; eos_id is the one that ends a sentence.
    first       (V,) where in the text each token came up first, NEVER for one that did not; None when not known.
    """

    columns: tuple[np.ndarray, ...]
    counts: np.ndarray
    vocab_size: int
    eos_id: int
    first: np.ndarray | None = None

    @property
    def order(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def tokens(self) -> int:
        """Tokens that were counted, ends of sentences among them."""
        total = int(self.counts.sum())
        if self.order == 1:
            return total
        first, second = self.columns[:2]
        return total - int(self.counts[(first == self.eos_id + 1) & (second != 0)].sum())


def count(
    ids: np.ndarray,
    order: int,
    *,
    vocab_size: int,
    eos_id: int,
    memory: int = DEFAULT_MEMORY,
    folder: Path | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> Counts:
    """The counts of a text, as sentences each followed by `eos_id`.

    memory  bytes to work in, about. A text that needs more is counted in parts, which go to a folder of their own in
            `folder` (the system's for temporary files when not given). The result is the same.
    tell    hears how much is done, from 0 to 1.
    """
    check_order(order)
    if len(ids) == 0:
        raise DataError("there is no text to count: it has no tokens")
    block = max(1024, memory // (WORKERS * (ROW_BYTES + 3 * order * token_type(vocab_size)().itemsize)))
    starts = range(0, len(ids), block)
    remove_abandoned(folder, PREFIX)
    tell(0.0)
    if len(starts) == 1:
        whole = counted_rows(ids, 0, len(ids), order, vocab_size, eos_id)
        return replace(whole, first=first_places(ids, vocab_size))
    with spill_folder(folder) as place:

        def run(start: int) -> Counts:
            part = counted_rows(ids, start, min(start + block, len(ids)), order, vocab_size, eos_id)
            release(ids)
            return spilled(part, place / f"run-{start}")

        parts: list[Counts] = []
        with threads(WORKERS) as pool:
            # Told by this thread alone, in the order of the text: whoever listens is not asked by two at once.
            for number, part in enumerate(pool.map(run, starts), 1):
                parts.append(part)
                tell(0.8 * number / len(starts))
        merged = merge(parts, memory=memory, folder=place)
        return replace(merged, first=first_places(ids, vocab_size))


def merge(parts: Sequence[Counts], *, memory: int = DEFAULT_MEMORY, folder: Path | None = None) -> Counts:
    """The counts of the parts of a text together. Rows are merged a range of first tokens at a time."""
    first = parts[0]
    for part in parts:
        if (part.order, part.vocab_size, part.eos_id) != (first.order, first.vocab_size, first.eos_id):
            raise UsageError(
                f"counts of order {part.order} over {part.vocab_size} tokens cannot be merged with counts of order "
                f"{first.order} over {first.vocab_size}: count both with the same tokenizer and order"
            )
    if len(parts) == 1:
        return first
    where = first_of(parts)
    total = sum(len(part) for part in parts)
    row = ROW_BYTES + 3 * first.order * first.columns[0].itemsize
    if total * row <= memory:
        return replace(merged_rows(parts, [(0, len(part)) for part in parts]), first=where)
    with spill_folder(folder) as place, threads(WORKERS) as pool:
        tasks = ranges([part.columns for part in parts], first.vocab_size, max(1024, memory // (WORKERS * row)))
        merged = joined(_ahead(pool, lambda bounds: merged_rows(parts, bounds), tasks), first, place / "merged")
        return replace(merged, first=where)


def check_order(order: int) -> None:
    if not 1 <= order <= LARGEST_ORDER:
        raise UsageError(f"order must lie in 1 .. {LARGEST_ORDER}, found {order}")


def counted_rows(ids: np.ndarray, start: int, stop: int, order: int, vocab_size: int, eos_id: int) -> Counts:
    """Rows that begin at tokens start .. stop - 1, and at the beginning of the text when start is 0."""
    kind = token_type(vocab_size)
    _check_range(ids[start:stop], vocab_size)
    text = ids[start : stop + order - 1].astype(kind)
    if order == 1:
        return grouped((text + kind(1),), None, vocab_size, eos_id)
    if start == 0:
        text = np.concatenate([np.array([eos_id], kind), text])
    n_rows = stop - start + (start == 0)
    if stop == len(ids) and text[-1] == eos_id:
        n_rows -= 1  # nothing begins after the last sentence
    columns = [np.zeros(n_rows, kind) for _ in range(order)]
    columns[0][:] = text[:n_rows] + kind(1)
    alive = np.ones(n_rows, bool)
    for j in range(1, order):
        if j > 1:
            alive &= columns[j - 1] != eos_id + 1
        here = text[j : j + n_rows] + kind(1)
        columns[j][: len(here)] = here
        columns[j][~alive] = 0
    ends = int((text[int(start == 0) :][: stop - start] == eos_id).sum())
    return _with_ends(grouped(tuple(columns), None, vocab_size, eos_id), ends)


def first_places(ids: np.ndarray, vocab_size: int) -> np.ndarray:
    first = np.full(vocab_size, NEVER)
    for start in reversed(range(0, len(ids), SLICE)):
        part = ids[start : start + SLICE]
        # Written backwards, so that the first place of each token is written last.
        first[part[::-1]] = np.arange(start + len(part) - 1, start - 1, -1)
    return first


def first_of(parts: Sequence[Counts]) -> np.ndarray | None:
    """Where each token came up first in the parts one after the other."""
    first, offset = np.full(parts[0].vocab_size, NEVER), 0
    for part in parts:
        if part.first is None:
            return None
        first = np.minimum(first, np.where(part.first == NEVER, NEVER, part.first + offset))
        offset += part.tokens
    return first


def _with_ends(counted: Counts, ends: int) -> Counts:
    """The table with the row `</s> . .`, which stands for the ends of sentences themselves."""
    if ends == 0:
        return counted
    place = int(np.searchsorted(counted.columns[0], counted.eos_id + 1))
    row = [counted.eos_id + 1, *[0] * (counted.order - 1)]
    columns = tuple(np.insert(column, place, value) for column, value in zip(counted.columns, row, strict=True))
    return Counts(columns, np.insert(counted.counts, place, ends), counted.vocab_size, counted.eos_id)


def grouped(columns: tuple[np.ndarray, ...], weights: np.ndarray | None, vocab_size: int, eos_id: int) -> Counts:
    """Equal rows brought together. Sorted by their 16-bit digits, last digit first, in time linear in the rows."""
    digits: list[np.ndarray] = []
    for column in columns:
        digits += [column] if column.itemsize == 2 else [(column >> 16).astype(np.uint16), column.astype(np.uint16)]
    order = np.lexsort(digits[::-1])
    columns = tuple(column[order] for column in columns)
    new = np.ones(len(order), bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    if weights is None:
        sums = np.diff(first, append=len(order))
    else:
        sums = np.add.reduceat(weights[order], first) if len(first) else np.zeros(0, np.int64)
    return Counts(tuple(column[first] for column in columns), sums.astype(np.int64), vocab_size, eos_id)


def merged_rows(parts: Sequence[Counts], bounds: Sequence[tuple[int, int]]) -> Counts:
    """Rows `bounds[i]` of every part i, equal ones brought together."""
    model = parts[0]
    columns = tuple(
        np.concatenate([part.columns[j][a:b] for part, (a, b) in zip(parts, bounds, strict=True)])
        for j in range(model.order)
    )
    weights = np.concatenate([part.counts[a:b] for part, (a, b) in zip(parts, bounds, strict=True)])
    return grouped(columns, weights, model.vocab_size, model.eos_id)


def _ahead(pool: ThreadPoolExecutor, work: Callable[[Any], Counts], tasks: Sequence[Any]) -> Iterator[Counts]:
    """What `work` makes of each task, in order. Few are begun before they are asked for: each takes memory."""
    pending: deque[Future[Counts]] = deque()
    for task in tasks:
        pending.append(pool.submit(work, task))
        if len(pending) > WORKERS:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def joined(pieces: Iterable[Counts], like: Counts, place: Path) -> Counts:
    """Sorted pieces one after the other as files, mapped."""
    kinds = [column.dtype for column in like.columns] + [np.dtype(np.int64)]
    stored = written(((*piece.columns, piece.counts) for piece in pieces), kinds, place)
    *columns, counts = (one.mapped() for one in stored)
    return Counts(tuple(columns), counts, like.vocab_size, like.eos_id)


def spilled(part: Counts, place: Path) -> Counts:
    """The same rows in files."""
    kinds = [column.dtype for column in (*part.columns, part.counts)]
    *columns, counts = cast(Any, written([(*part.columns, part.counts)], kinds, place))
    return Counts(tuple(columns), counts, part.vocab_size, part.eos_id)


def token_type(vocab_size: int) -> type[np.unsignedinteger]:
    """Of a token + 1."""
    return np.uint16 if vocab_size < (1 << 16) else np.uint32


def _check_range(ids: np.ndarray, vocab_size: int) -> None:
    for token in (int(ids.min()), int(ids.max())):
        if not 0 <= token < vocab_size:
            raise DataError(f"token id {token} is not in 0 .. {vocab_size - 1}: another tokenizer made it")
