"""Batches: what a training step or an evaluation step reads.

A sample is a stretch of target tokens of a shard; the token before each of them is its input. A shard is read as a
ring, so that the input of its first token is its last, an `<eos>`: documents and the whole text start alike.

The samplers are pure functions of (seed, step): `batch(k)` is the same whenever and in whatever order it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regard.core.inputs import NOT_COUNTED
from regard.data.bucket import Buckets
from regard.data.order import drawn, mixed
from regard.data.shard import TokenShard
from regard.errors import TooSmall, UsageError


@dataclass(frozen=True)
class Batch:
    """Rows of tokens and what is to be predicted.

    tokens   (B, T) int64, padded on the right; of a series (B, T, K), the numbers known ahead.
    targets  (B, T) int64, the next token or the tag of each, or (B,), the class of the whole; -100 where it does not
             count. Of a series the numbers themselves; NaN where it does not count.
    lengths  (B,) int64, the real tokens of each row.
    packed   the rows lie end to end in one, without padding: tokens and targets are (1, P), P the sum of `lengths`.
    indices  global numbers of the samples, to find them again.
    fresh    rows begin anew. False: they go on where those of the batch before ended, for carried state.
    source   what is read before: tokens (B, S), pictures (B, 3, H, W) or numbers (B, S, C); None without such a side.
    source_lengths  (B,) int64, the real tokens of each source.
    known_ragged    `ragged`, where it was asked for before: a compiler cannot look at lengths.
    targets_a_pair  of a part of a batch: how many targets count in the whole for each two neighbours that do.
    """

    tokens: Tensor
    targets: Tensor
    lengths: Tensor
    indices: list[int]
    fresh: bool = True
    source: Tensor | None = None
    source_lengths: Tensor | None = None
    known_ragged: bool | None = None
    packed: bool = False
    targets_a_pair: float | None = None

    @property
    def n_places(self) -> int:
        """Places for tokens, padding among them, of every side whose rows have lengths."""
        places = self.tokens.shape[0] * self.tokens.shape[1]
        if self.source is not None and self.source_lengths is not None:
            places += self.source.shape[0] * self.source.shape[1]
        return places

    @property
    def n_padding(self) -> int:
        """How many of them hold padding."""
        real = int(self.lengths.sum())
        return self.n_places - real - (0 if self.source_lengths is None else int(self.source_lengths.sum()))

    @property
    def offsets(self) -> Tensor:
        """Of packed rows where each begins, and where the last ends, (B + 1,)."""
        return torch.cat([torch.zeros(1, dtype=torch.long), self.lengths.cumsum(0)])

    @property
    def n_counted(self) -> int:
        """How many targets count."""
        counted = ~self.targets.isnan() if self.targets.is_floating_point() else self.targets != NOT_COUNTED
        return int(counted.sum())

    @property
    def ragged(self) -> bool:
        """Whether rows differ in length."""
        if self.packed:
            return True
        if self.known_ragged is not None:
            return self.known_ragged
        return int(self.lengths.min()) < self.tokens.shape[1]

    def first(self, rows: int) -> Batch:
        """The same with its first rows alone."""
        values = {name: value[:rows] for name, value in vars(self).items() if isinstance(value, Tensor)}
        if self.packed:
            end = int(self.lengths[:rows].sum())
            values |= {"tokens": self.tokens[:, :end], "targets": self.targets[:, :end]}
        return replace(self, indices=self.indices[:rows], **values)

    def to(self, device: torch.device) -> Batch:
        """The batch with its tensors on `device`; its lengths stay on the host, where they are looked at."""
        # From pinned memory the copy does not wait for the work that is queued on the device.
        pin = device.type == "cuda"

        def moved(part: Tensor) -> Tensor:
            return (part.pin_memory() if pin else part).to(device, non_blocking=True)

        source = None if self.source is None else moved(self.source)
        tokens, targets = moved(self.tokens), moved(self.targets)
        return replace(self, tokens=tokens, targets=targets, source=source, known_ragged=self.ragged)


class Windows:
    """Windows of `length` tokens. An epoch cuts the ring into windows from a random point on and shuffles them."""

    def __init__(self, shard: TokenShard, length: int, seed: int) -> None:
        _check_length(length, shard.tokens, length + 1, "a window", "a smaller train.length")
        self.shard, self.length, self.seed = shard, length, seed

    @property
    def samples_per_epoch(self) -> int:
        return self.shard.tokens // self.length

    def batch(self, step: int, batch_size: int) -> Batch:
        numbers = _numbers(step, batch_size)
        windows = drawn(numbers, self.samples_per_epoch, self.seed)
        starts = phases(numbers // self.samples_per_epoch, self.seed, self.shard.tokens) + windows * self.length
        return _gathered(self.shard, starts, np.full(batch_size, self.length), numbers)


class Documents:
    """One document a row, `<eos>` first: tokens = <eos> d_1 .. d_n, targets = d_1 .. d_n <eos>.

    A document of more than `max_length` targets becomes several samples, each of full length; the last one reaches
    back and counts only what the others have not. Batches join documents of similar length to save padding or, where
    they are laid end to end (`packed`), of all lengths, so that every batch holds about as many tokens.
    """

    def __init__(self, shard: TokenShard, seed: int, max_length: int | None = None, *, packed: bool = False) -> None:
        self.shard, self.packed = shard, packed
        self.starts, self.lengths, self.uncounted = stretches(shard.starts, shard.sizes, max_length, None)
        self.buckets = Buckets(self.lengths, seed, evenly=packed)

    @property
    def samples_per_epoch(self) -> int:
        return len(self.starts)

    def batch(self, step: int, batch_size: int) -> Batch:
        chosen, numbers = self.buckets.batch(step, batch_size)
        gathered = _end_to_end if self.packed else _gathered
        return gathered(self.shard, self.starts[chosen], self.lengths[chosen], numbers, self.uncounted[chosen])


class Lanes:
    """Rows that go on from batch to batch, for truncated backpropagation with carried state.

    An epoch cuts the ring, from a random point on, into `batch_size` lanes of equal length, read `length` at a time.
    """

    def __init__(self, shard: TokenShard, length: int, batch_size: int, seed: int) -> None:
        what, advice = f"a batch of {batch_size} lanes", "a smaller train.batch_size or train.length"
        _check_length(length, shard.tokens, length * batch_size, what, advice)
        self.shard, self.length, self.batch_size, self.seed = shard, length, batch_size, seed
        self.lane_length = shard.tokens // batch_size

    @property
    def batches_per_epoch(self) -> int:
        return self.lane_length // self.length

    @property
    def samples_per_epoch(self) -> int:
        return self.batches_per_epoch * self.batch_size

    def batch(self, step: int, batch_size: int) -> Batch:
        if batch_size != self.batch_size:
            raise UsageError(f"lanes were laid out for batches of {self.batch_size} rows, not {batch_size}")
        epoch, place = divmod(step, self.batches_per_epoch)
        begin = phases(np.array([epoch]), self.seed, self.shard.tokens) + place * self.length
        starts = begin + np.arange(batch_size) * self.lane_length
        lengths = np.full(batch_size, self.length)
        return _gathered(self.shard, starts, lengths, _numbers(step, batch_size), fresh=place == 0)


def evaluation_batches(
    shard: TokenShard, *, length: int | None, batch_size: int, stride: int | None = None, kind: str = "stream"
) -> Iterator[Batch]:
    """Batches in which every token of the shard, `<eos>` included, counts exactly once.

    stream     the shard as one text. Without a stride, in lanes that go on from batch to batch (`fresh` is False).
               With one, in windows of `length` tokens, each `stride` after the one before; only new tokens count.
    documents  one document a row, longest first; documents of more than `length` tokens in windows as above, a whole
               window apart unless a stride is given. `length` None takes every document whole.
    """
    if kind not in ("stream", "documents"):
        raise UsageError(f"evaluation of kind {kind!r} is not a choice; known: documents, stream")
    if batch_size < 1 or (length is not None and length < 1):
        raise UsageError(f"length {length} and batch_size {batch_size} must be at least 1")
    if stride is not None and (length is None or not 1 <= stride <= length):
        raise UsageError(f"stride {stride} must lie in 1 .. {length}, the length of a window")
    if kind == "stream" and stride is None:
        yield from _lanes_once(shard, length or shard.tokens, batch_size)
        return
    origins, sizes = (shard.starts, shard.sizes) if kind == "documents" else ([0], [shard.tokens])
    starts, lengths, uncounted = stretches(np.asarray(origins), np.asarray(sizes), length, stride)
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        yield _gathered(shard, starts[rows], lengths[rows], rows, uncounted[rows])


def stretches(
    origins: np.ndarray, sizes: np.ndarray, length: int | None, stride: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows over texts that begin at `origins` and have `sizes` targets: starts, lengths, and how many do not count.

    Window j of a text of more than `length` targets ends at length + j x stride, or at the end of the text.
    """
    if length is None:
        return origins, sizes, np.zeros_like(sizes)
    step = stride or length
    per_text = 1 + -(-np.maximum(sizes - length, 0) // step)
    text = np.repeat(np.arange(len(sizes)), per_text)
    j = np.arange(len(text)) - np.repeat(np.cumsum(per_text) - per_text, per_text)
    ends = np.minimum(length + j * step, sizes[text])
    begins = np.maximum(ends - length, 0)
    uncounted = np.where(j > 0, length + (j - 1) * step - begins, 0)
    return origins[text] + begins, ends - begins, uncounted


def _lanes_once(shard: TokenShard, length: int, batch_size: int) -> Iterator[Batch]:
    """The whole text in lanes of equal length, then what the division left over, as a lane of its own."""
    n_lanes = min(batch_size, shard.tokens)
    lane_length = shard.tokens // n_lanes
    left = shard.tokens - n_lanes * lane_length
    number = 0
    for origins, size in ((np.arange(n_lanes) * lane_length, lane_length), (np.array([shard.tokens - left]), left)):
        for begin in range(0, size, length):
            lengths = np.full(len(origins), min(length, size - begin))
            numbers = np.arange(number, number + len(origins))
            yield _gathered(shard, origins + begin, lengths, numbers, fresh=begin == 0)
            number += len(origins)


def _gathered(
    shard: TokenShard,
    starts: np.ndarray,
    lengths: np.ndarray,
    numbers: np.ndarray,
    uncounted: np.ndarray | None = None,
    fresh: bool = True,
) -> Batch:
    """The batch whose row b predicts `lengths[b]` tokens from `starts[b]` on; the first `uncounted[b]` do not count."""
    places = np.arange(int(lengths.max()))
    read = shard.ids[(starts[:, None] + np.arange(-1, len(places))) % shard.tokens]
    # Inputs and targets in one array, so that one tensor is made, and each of them contiguous.
    both = np.empty((2, len(starts), len(places)), dtype=np.int64)
    both[0], both[1] = read[:, :-1], read[:, 1:]
    padding = places >= lengths[:, None]
    both[0][padding] = shard.ids[-1]
    both[1][padding] = NOT_COUNTED
    if uncounted is not None:
        both[1][places < uncounted[:, None]] = NOT_COUNTED
    tensor = torch.from_numpy(both)
    return Batch(tensor[0], tensor[1], torch.from_numpy(lengths.astype(np.int64)), numbers.tolist(), fresh)


def _end_to_end(
    shard: TokenShard, starts: np.ndarray, lengths: np.ndarray, numbers: np.ndarray, uncounted: np.ndarray
) -> Batch:
    """The same rows without padding, one after the other."""
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.repeat(starts, lengths) + within
    both = np.empty((2, 1, len(places)), dtype=np.int64)
    both[0, 0], both[1, 0] = shard.ids[(places - 1) % shard.tokens], shard.ids[places]
    both[1, 0, within < np.repeat(uncounted, lengths)] = NOT_COUNTED
    tensor = torch.from_numpy(both)
    return Batch(tensor[0], tensor[1], torch.from_numpy(lengths.astype(np.int64)), numbers.tolist(), packed=True)


def _numbers(step: int, batch_size: int) -> np.ndarray:
    return np.arange(step * batch_size, (step + 1) * batch_size)


def phases(epochs: np.ndarray, seed: int, n_tokens: int) -> np.ndarray:
    """Where on the ring each epoch begins."""
    found = {int(epoch): mixed(seed, int(epoch), 1) % n_tokens for epoch in np.unique(epochs)}
    return np.array([found[int(epoch)] for epoch in epochs])


def _check_length(length: int, n_tokens: int, needed: int, what: str, advice: str) -> None:
    if length < 1:
        raise UsageError(f"length {length} must be at least 1")
    if n_tokens < needed:
        raise TooSmall(
            f"the training part has {n_tokens} tokens and {what} of length {length} needs at least {needed}: "
            f"give more text or choose {advice}"
        )
