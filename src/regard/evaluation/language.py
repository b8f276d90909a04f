"""Language models on held-out text: loss, perplexity, bits per byte and per character, the same for every family.

Every token of the shard is predicted once. How much the model may look at is a fact of the model:

- A state of constant size is carried along the text. The text is read in a few stretches side by side, each warmed up
  on the tokens before it, so that one long text does not mean a batch of one.
- A state that grows, or positions that end, ask for windows: `length` tokens, of which the new `stride` ones count.
- In a world each document is read from its beginning, as the exact optimum is known for that.

The result depends on the text and on `length`, never on the batch size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from regard.core.model import TokenModel
from regard.core.progress import stage
from regard.decoding.score import perplexity
from regard.decoding.span import Reading, Span, read_spans, whole, windows
from regard.errors import DataError, UsageError
from regard.evaluation.each import EachScore, of_text
from regard.evaluation.unknown import Unknown, by_token

DEFAULT_LENGTH = 512
STRETCHES = 16
MOST_EACH = 1 << 20  # tokens of a text whose documents are told one by one


@runtime_checkable
class Shard(Protocol):
    """What evaluation asks of prepared text: ids (documents each followed by eos), where documents start, its size, and
    the bytes that each unknown token stands for."""

    @property
    def ids(self) -> np.ndarray: ...
    @property
    def starts(self) -> np.ndarray: ...
    @property
    def n_bytes(self) -> int: ...
    @property
    def n_chars(self) -> int: ...
    @property
    def unknown(self) -> np.ndarray | None: ...


@runtime_checkable
class TokenDecoder(Protocol):
    """What evaluation asks of a tokenizer: the start symbol, and text from ids."""

    @property
    def kind(self) -> str: ...
    @property
    def eos_id(self) -> int: ...
    @property
    def start_id(self) -> int: ...
    @property
    def unknown_id(self) -> int | None: ...
    def spelling(self, sizes: np.ndarray, /) -> np.ndarray: ...
    def decode(self, ids: list[int], /) -> str: ...
    def piece(self, token: int, previous: int | None, /) -> bytes: ...


@runtime_checkable
class KnownWorld(Protocol):
    """What evaluation asks of a world: the best possible loss, and where a fact has to be recalled from how far."""

    @property
    def tokens(self) -> str: ...
    def optimal_loss(self, documents: list[str], /) -> float: ...
    def recall_points(self, document: str, /) -> list[tuple[int, int]]: ...


@dataclass(frozen=True)
class LanguageReport:
    """Held-out quality, in plain keys.

    loss          nats per token; perplexity is exp(loss).
    bits_per_*    over the bytes and characters of the original text; None when their number is not known.
    tokens        how many were predicted, the ends of documents among them.
    unknown       how many of those stand for what is not in the vocabulary, and their share, if any. In loss and
                  perplexity they cost one token however long they are; bits count what they stand for besides: of a
                  word 8 bits a byte, of a character the choice among all others.
    optimal_loss  in a world: the loss of the true distribution on the same documents; excess is loss less that.
    recall        in a world: how often the most probable token was right where a fact had to be recalled, by distance.
    each          tells the loss of every document or stretch, of a text that is not too long for that.
    """

    loss: float
    perplexity: float
    bits_per_byte: float | None
    bits_per_character: float | None
    tokens: int
    unknown: int | None = None
    unknown_share: float | None = None
    optimal_loss: float | None = None
    excess: float | None = None
    recall: dict[str, float] | None = None
    each: Callable[[], EachScore] | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without what was not measured."""
        return {key: value for key, value in vars(self).items() if value is not None and key != "each"}


@dataclass(frozen=True)
class Habit:
    """How a model was trained to read, and is therefore evaluated.

    carries      a state of constant size goes on over the whole stream; otherwise it starts anew in every window.
    by_document  documents stand alone; otherwise they are one stream.
    """

    carries: bool = True
    by_document: bool = False


AS_STREAM = Habit()


def evaluate(
    model: TokenModel,
    shard: Shard,
    *,
    tokenizer: TokenDecoder,
    length: int | None = None,
    stride: int | None = None,
    batch_size: int = 16,
    at_once: int = 0,
    world: KnownWorld | None = None,
    limit: int | None = None,
    habit: Habit = AS_STREAM,
) -> LanguageReport:
    """The report on a shard, or on its first `limit` tokens (in a world: on whole documents within them).

    length  tokens a windowed model sees at a time, at most its own window; a carried state is warmed up on as many.
    stride  new tokens in each window, half of `length` when not given.
    at_once of short documents more than `batch_size` are read together, up to so many tokens.
    habit   how the model was trained to read.
    """
    total = len(shard.ids)
    if total == 0:
        raise DataError("the held-out part is empty: give more text, or hold out a larger part of it")
    length = _window(model, length, stride)
    windowed = _windowed(model) or not habit.carries
    end = total if limit is None else max(1, min(limit, total))
    documents = _documents(shard, end) if world is not None or habit.by_document else np.zeros((0, 2), np.int64)
    if len(documents):
        end = int(documents[-1, 1])
        spans = [span for pair in documents for span in _spans(windowed, int(pair[0]), int(pair[1]), length, stride)]
    elif windowed:
        spans = _spans(windowed, 0, end, length, stride)
    else:
        spans = stretches(end, length)
    tally = _Tally(np.zeros(end, dtype=bool), np.zeros(end if end <= MOST_EACH else 0))
    with stage("evaluating", end, "tokens") as advance:
        asked = {"batch_size": batch_size, "at_once": at_once, "best": world is not None}
        for reading in read_spans(model, shard.ids, spans, start_id=tokenizer.start_id, **asked):
            tally.add(reading)
            advance(len(reading.index))
    report = tally.report(shard, total, tokenizer)
    if end <= MOST_EACH:
        report = replace(report, each=partial(tally.each, shard, tokenizer))
    # Only where the model's tokens are the world's own does the optimum speak of the same predictions.
    if world is None or tokenizer.kind != world.tokens:
        return report
    texts = [tokenizer.decode(shard.ids[first : stop - 1].tolist()) for first, stop in documents]
    optimal = world.optimal_loss(texts)
    recall = tally.recall(_recalled(world, documents, texts))
    return replace(report, optimal_loss=optimal, excess=report.loss - optimal, recall=recall)


def _recalled(world: KnownWorld, documents: np.ndarray, texts: list[str]) -> list[tuple[int, int]]:
    """Where in the shard something from further back is asked for, and how far back it is."""
    points = []
    for first, text in zip(documents[:, 0].tolist(), texts, strict=True):
        points += [(first + index, distance) for index, distance in world.recall_points(text)]
    return points


def stretches(end: int, warm_up: int) -> list[Span]:
    """The first `end` tokens in a few equal parts, each read from `warm_up` tokens before it.

    Their number depends on the text alone, and the warming up costs at most an eighth.
    """
    parts = max(1, min(STRETCHES, end // (8 * warm_up)))
    bounds = [end * part // parts for part in range(parts + 1)]
    return [Span(max(-1, first - 1 - warm_up), first, stop - 1) for first, stop in itertools.pairwise(bounds)]


@dataclass
class _Tally:
    """Sums over the tokens read so far, and for each of them whether it was the most probable one.

    nats_of   of each token, where they are few enough to be kept.
    """

    best: np.ndarray
    nats_of: np.ndarray
    nats: float = 0.0
    tokens: int = 0

    def add(self, reading: Reading) -> None:
        self.best[reading.index] = reading.best
        if len(self.nats_of):
            self.nats_of[reading.index] = -reading.log_prob
        self.nats -= float(reading.log_prob.sum())
        self.tokens += len(reading.index)

    def report(self, shard: Shard, total: int, tokenizer: TokenDecoder) -> LanguageReport:
        """Of a part of the shard, the same share of its bytes and characters is taken."""
        assert self.tokens == len(self.best), "a token was counted twice or never"
        unknown = Unknown.of(shard, self.tokens, tokenizer)
        loss = self.nats / self.tokens
        bits = (self.nats + float(unknown.spelling.sum())) / math.log(2) * total / self.tokens
        per_byte = bits / shard.n_bytes if shard.n_bytes else None
        per_character = bits / shard.n_chars if shard.n_chars else None
        count = len(unknown.places)
        told = {"unknown": count, "unknown_share": count / self.tokens} if count else {}
        return LanguageReport(loss, perplexity(loss), per_byte, per_character, self.tokens, **told)

    def each(self, shard: Shard, tokenizer: TokenDecoder) -> EachScore:
        """The loss of every document or stretch."""
        sizes, spelling = by_token(shard, self.tokens, tokenizer)
        return of_text(self.nats_of, sizes, shard.starts, shard.n_bytes, spelling)

    def recall(self, points: list[tuple[int, int]]) -> dict[str, float]:
        """The share of right answers among (index, distance), in buckets of distances up to 1, 2, 4, 8 and so on."""
        buckets: dict[int, list[bool]] = {}
        for index, distance in points:
            buckets.setdefault((distance - 1).bit_length(), []).append(bool(self.best[index]))
        return {_bucket(power): sum(hits) / len(hits) for power, hits in sorted(buckets.items())}


def _bucket(power: int) -> str:
    """Distances above 2^(power - 1) up to 2^power, such as "5-8"."""
    last = 2**power
    first = last // 2 + 1
    return str(last) if first >= last else f"{first}-{last}"


def _windowed(model: TokenModel) -> bool:
    """Whether the model sees a bounded stretch of text at a time, because its positions end or its state grows."""
    grows = getattr(getattr(model, "stack", model), "state_grows", False)
    return model.max_length is not None or bool(grows)


def _window(model: TokenModel, length: int | None, stride: int | None) -> int:
    """Tokens in a window: as asked for, or the model's own, and never more than that."""
    own = model.max_length
    length = length or own or DEFAULT_LENGTH
    if own is not None:
        length = min(length, own)
    if length < 1 or (stride is not None and not 1 <= stride <= length):
        raise UsageError(f"length must be positive and stride lie between 1 and length, found {length} and {stride}")
    return length


def _spans(windowed: bool, first: int, stop: int, length: int, stride: int | None) -> list[Span]:
    """Tokens first .. stop - 1, the one before them being the start symbol."""
    return windows(first - 1, stop - 1, length, stride) if windowed else whole(first - 1, stop - 1)


def _documents(shard: Shard, end: int) -> np.ndarray:
    """First token and one past the end symbol of every document within `end` tokens, and at least of one, (n, 2)."""
    bounds = np.append(np.asarray(shard.starts, np.int64), len(shard.ids))
    found = np.stack([bounds[:-1], bounds[1:]], 1)
    found = found[found[:, 1] > found[:, 0]]
    within = found[found[:, 1] <= end]
    return within if len(within) else found[:1]
