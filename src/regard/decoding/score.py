"""How probable given texts are: log p of every token, and the chain-rule product.

    p(w_1 .. w_n) = prod_t p(w_t | w_1 .. w_(t-1))

The first token is predicted from the start symbol. A text that is longer than the model's window is read in windows
that overlap by half.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from torch import Tensor

from regard.core.model import TokenModel
from regard.decoding.prompt import check_tokens
from regard.decoding.span import Span, read_spans, whole, windows
from regard.errors import UsageError


@dataclass(frozen=True)
class TextSize:
    """What bits can be counted over besides tokens. spelling: nats that say what unknown tokens stand for."""

    n_chars: int
    n_bytes: int
    spelling: float = 0.0

    @classmethod
    def of(cls, text: str, spelling: float = 0.0) -> TextSize:
        return cls(len(text), len(text.encode()), spelling)


@dataclass(frozen=True)
class Score:
    """A text under the model's raw distribution: its tokens and log p of each, given all before it."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    size: TextSize | None = None

    @property
    def log_prob(self) -> float:
        """log p of the whole text, in nats."""
        return math.fsum(self.log_probs)

    @property
    def probability(self) -> float:
        """The chain-rule product. A long text's is too small for a float and comes out as 0."""
        return math.exp(self.log_prob)

    @property
    def running(self) -> tuple[float, ...]:
        """log p(w_1 .. w_t) for every t."""
        return tuple(itertools.accumulate(self.log_probs))

    @property
    def loss(self) -> float:
        """Nats per token."""
        return -self.log_prob / len(self.tokens)

    @property
    def perplexity(self) -> float:
        """exp(loss): the number of equally probable tokens that would be as surprising; infinite when p is 0."""
        return perplexity(self.loss)

    @property
    def nats(self) -> float:
        return -self.log_prob

    @property
    def bits(self) -> float:
        return self.nats / math.log(2)

    @property
    def bits_per_character(self) -> float | None:
        """None when the text's size was not given."""
        return self._spelled(self.size) / self.size.n_chars if self.size and self.size.n_chars else None

    @property
    def bits_per_byte(self) -> float | None:
        """None when the text's size was not given."""
        return self._spelled(self.size) / self.size.n_bytes if self.size and self.size.n_bytes else None

    def _spelled(self, size: TextSize) -> float:
        return self.bits + size.spelling / math.log(2)


def score(
    model: TokenModel,
    texts: Sequence[Int[Tensor, "_"]],
    *,
    start_id: int,
    sizes: Sequence[TextSize] | None = None,
    batch_size: int = 16,
    window: int | None = None,
) -> list[Score]:
    """The score of each text. `sizes` adds bits per character and per byte; `window` limits the context."""
    check_tokens(model, [start_id], "the start symbol")
    rows = [text.tolist() for text in texts]
    spans: list[Span] = []
    ids: list[int] = []
    for number, row in enumerate(rows):
        if not row:
            raise UsageError(f"text {number} is empty: there is nothing to score")
        check_tokens(model, row, f"text {number}")
        begin, end = len(ids), len(ids) + len(row)
        limits = [limit for limit in (model.max_length, window) if limit is not None]
        spans += windows(begin, end, min(limits)) if limits else whole(begin, end)
        ids += [start_id, *row]
    log_probs = np.zeros(len(ids))
    for reading in read_spans(model, np.array(ids), spans, start_id=start_id, batch_size=batch_size, best=False):
        log_probs[reading.index] = reading.log_prob
    scores, begin = [], 0
    for row, size in zip(rows, sizes or [None] * len(rows), strict=True):
        stop = begin + 1 + len(row)
        scores.append(Score(tuple(row), tuple(log_probs[begin + 1 : stop].tolist()), size))
        begin = stop
    return scores


def perplexity(loss: float) -> float:
    """exp(loss), infinite where that is too large for a float."""
    return math.exp(loss) if loss < 709 else math.inf
