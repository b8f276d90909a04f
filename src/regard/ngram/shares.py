"""Shares: what each context gives to the words that were seen after it, and what it leaves to the shorter context.

Every class here works on a part of the n-grams of an order, and what it finds depends on that part alone, so that any
process may do it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.ngram.gram import Grams
from regard.ngram.smoothing import Discounts, Smoothing, extra
from regard.ngram.spill import Stored, gathered, landed
from regard.storage.arrays import release


@dataclass(frozen=True)
class Rules:
    """How counts become probabilities.

    interpolate  mix each order with the shorter ones; otherwise back off to them where nothing was seen.
    k            of add_k.
    prune        for each order the highest count that is dropped, the last for all that follow: (0, 0, 1) keeps words
                 and pairs, and of longer n-grams those seen twice.
    closed       give nothing to tokens that were never seen.
    """

    smoothing: Smoothing = "modified_kneser_ney"
    interpolate: bool = True
    k: float = 1.0
    prune: tuple[int, ...] = ()
    closed: bool = False

    def dropped(self, order: int) -> int:
        """The highest count at which an n-gram of this order is dropped."""
        if not self.prune or order == 1:
            return 0
        return self.prune[min(order, len(self.prune)) - 1]


@dataclass(frozen=True)
class Sharer:
    """Works out what contexts share out. n_base and seen: as of a `_Maker`."""

    rules: Rules
    order: int
    vocab_size: int
    n_base: int
    part: Grams
    found: Discounts
    seen: np.ndarray | Stored

    def __call__(self, bounds: tuple[slice, slice]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Denominator and gamma of contexts, and, where models back off, p of the last word of their n-grams."""
        rows, contexts = bounds
        rules, part, size = self.rules, self.part.landed(), contexts.stop - contexts.start
        counts = part.counts(rows)
        context = part.keys[rows] // self.vocab_size - contexts.start
        kept = part.raw[rows] > rules.dropped(self.order)
        discount = self.found.of(counts)
        mass = _sums(context, discount if kept.all() else np.where(kept, discount, counts), size)
        denominator = _sums(context, counts, size)
        more = extra(rules.smoothing, rules.k, self.n_base, lambda: np.bincount(context, minlength=size))
        mass = mass + more  # not in place: where there is nothing, bincount gives whole numbers
        denominator = denominator + more
        own = np.zeros(0)
        if not rules.interpolate:
            below = gathered(landed(self.seen), part.suffix[rows])
            mass, denominator = _back_off(context[kept], below[kept], (counts - discount)[kept], (mass, denominator))
            own = (counts - discount) / denominator[context]
        # 1 where nothing followed; where all that followed was dropped this is 1 of itself.
        gamma = np.divide(mass, denominator, out=np.ones(size), where=denominator > 0)
        part.release()
        return denominator, gamma, own


@dataclass(frozen=True)
class Pairer:
    """Of n-grams that are kept the pairs of count and denominator. dropped: the highest count that is not kept."""

    vocab_size: int
    dropped: int
    part: Grams
    denominators: np.ndarray | Stored
    different: np.ndarray | Stored

    def __call__(self, bounds: tuple[slice, slice]) -> np.ndarray:
        rows, contexts = bounds
        part, denominators = self.part.landed(), landed(self.denominators)
        counts, context = part.counts(rows), part.keys[rows] // self.vocab_size - contexts.start
        if self.dropped > 0:
            kept = part.raw[rows] > self.dropped
            counts, context = counts[kept], context[kept]
        found = pairs(counts, context, denominators[contexts], landed(self.different))
        part.release()
        release(denominators)
        return found


@dataclass(frozen=True)
class Sliced:
    """Parts of an array."""

    numbers: np.ndarray | Stored

    def __call__(self, rows: slice) -> np.ndarray:
        numbers = landed(self.numbers)
        found = np.array(numbers[rows])
        release(numbers)
        return found


def _back_off(
    context: np.ndarray, below: np.ndarray, seen: np.ndarray, shares: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Mass and denominator such that what is left over goes to the words that were not seen, and to them only.

    After a context that saw every word nobody is left to take it: there the seen ones share it by their counts.
    """
    mass, denominator = shares
    left = 1 - np.bincount(context, below, len(mass))
    nobody = left < 1e-9
    total = np.bincount(context, seen, len(mass))
    denominator = np.where(nobody & (total > 0), total, denominator)
    return np.where(nobody, 0.0, mass / np.where(nobody, 1.0, left)), denominator


def pairs(counts: np.ndarray, context: np.ndarray, denominators: np.ndarray, different: np.ndarray) -> np.ndarray:
    """Of each n-gram the pair of its count and its denominator, as one number."""
    rank = np.searchsorted(different, denominators)
    return counts * np.int64(len(different)) + rank[context]


def _sums(place: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Sums of weights by place, float64 also where there is nothing to sum."""
    return np.bincount(place, weights, size).astype(np.float64, copy=False)
