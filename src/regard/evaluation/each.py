"""EachScore: the score of every example, document or stretch of a test, from which that of the whole is made.

    score = sum of values / sum of weights

A score that is no mean of its examples, such as chrF, is told by pseudo-values, whose mean it is (Tukey 1958):

    value of i = S + (n - 1) (mean of S without j over all j - S without i)

Glossary
S  score of the whole        n  number of examples
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

FEWEST, STRETCHES = 10, 20  # documents that are worth drawing from, and stretches of a text that has fewer
LONGEST = 4000  # bytes of a document, in the mean, of which some are read
STRETCH = 1000  # bytes of a stretch of a text of few documents, where it has enough of them


@dataclass(frozen=True, eq=False)
class EachScore:
    """values, weights (n,). sizes: of a text the bytes of each, by which texts in other tokens are compared.

    spelling  nats that say what unknown tokens of each stand for: a part of bits, and none of a loss by tokens.
    """

    values: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray | None = None
    spelling: np.ndarray | None = None

    @classmethod
    def mean_of(cls, values: Sequence[float] | np.ndarray) -> Self:
        """Examples of equal weight."""
        found = np.asarray(values, dtype=np.float64)
        return cls(found, np.ones(len(found)))

    @classmethod
    def pseudo(cls, whole: float, without: np.ndarray) -> Self:
        """Of a score of all examples, and of all but each."""
        return cls.mean_of(whole + (len(without) - 1) * (without.mean() - without))

    @property
    def score(self) -> float:
        return float(self.values.sum() / self.weights.sum())

    def __len__(self) -> int:
        return len(self.values)

    def in_blocks(self, size: int) -> Self:
        """So many neighbours together, each as one."""
        firsts = np.arange(0, len(self), max(1, size))
        return self._each(lambda one: np.add.reduceat(one, firsts))

    def first(self, count: int) -> Self:
        """The first so many alone."""
        return self._each(lambda one: one[:count])

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> Self:
        """The same done to all columns."""
        return replace(self, **{name: change(one) for name, one in vars(self).items() if one is not None})

    def per_byte(self) -> Self:
        """Of nats their bits a byte."""
        assert self.sizes is not None, "only a text has bytes"
        nats = self.values if self.spelling is None else self.values + self.spelling
        return type(self)(nats / math.log(2), self.sizes, self.sizes)


def of_text(
    nats: np.ndarray, sizes: np.ndarray, starts: np.ndarray, n_bytes: int, spelling: np.ndarray | None = None
) -> EachScore:
    """The nats of a text by documents, or of few documents by stretches of as many bytes whatever its tokens.

    nats, sizes  of each token that was read, its bytes. spelling: nats that say what unknown ones stand for.
    starts       where documents begin. n_bytes: of the whole text, of which a part may have been read.
    """
    firsts = np.asarray(starts)[np.asarray(starts) < len(nats)]
    # Asked of the whole text and not of the part that was read, so that it does not depend on its tokens.
    if len(starts) < FEWEST or n_bytes > LONGEST * len(starts):
        stretch = max(1.0, min(STRETCH, max(n_bytes, int(sizes.sum())) / STRETCHES))
        number = ((np.cumsum(sizes) - sizes) // stretch).astype(np.int64)
        firsts = np.flatnonzero(np.diff(number, prepend=-1))
    spelt = np.zeros(len(nats)) if spelling is None else spelling
    summed = [np.add.reduceat(one, firsts) for one in (nats, np.ones(len(nats)), sizes, spelt)]
    return EachScore(*(np.asarray(one, dtype=np.float64) for one in summed))
