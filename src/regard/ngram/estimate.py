"""From counts to levels: the probabilities of every order, by the formulas of `smoothing`.

All of it is passes over sorted arrays, a part at a time: arrays may be files, and what is held in memory is bounded.
N-grams of every order are read off the one sorted table (`gram`); here they become probabilities, order by order.

Glossary
context  of an n-gram: the place of its first n - 1 words among the n-grams one shorter
suffix   the place of its last n - 1 words there: what continuation counts are counted over
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from regard.ngram.counts import DEFAULT_MEMORY, Counts
from regard.ngram.gram import Desk, Grams, adjusted, grams_of
from regard.ngram.level import Level, Values, coded, coded_in_parts, empty_values
from regard.ngram.smoothing import CONTINUATION, Discounts, Smoothing, discounts_from, extra, numbers_for_discounts
from regard.ngram.spill import gathered
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
class Estimate:
    """levels     one for each order from 1 on.
    discounts  of each order.
    root       the weight of 1 / n_base under the words, and n_base, the tokens that share it.
    n_grams    of each order, before pruning.
    """

    levels: list[Level]
    discounts: list[Discounts]
    root: tuple[float, int]
    n_grams: list[int]


def estimate(
    counts: Counts,
    rules: Rules,
    tell: Callable[[str, float], None] = lambda *_: None,
    *,
    memory: int = DEFAULT_MEMORY,
    folder: Path | None = None,
) -> Estimate:
    """The levels of a model. `tell` hears what is being done and how much of it is done.

    memory  bytes to work in, about, beside some sixty for each token of the vocabulary. What needs more goes to files
            in `folder` (the system's for temporary files when not given); the levels are then mapped from them.
    """
    desk = Desk(memory, folder)
    grams = grams_of(counts, desk, lambda share: tell("counting", share / 2))
    if rules.smoothing in CONTINUATION or not rules.interpolate:
        adjusted(grams, counts.vocab_size, desk)
    if rules.smoothing not in CONTINUATION:
        for part in grams:
            part.left = np.zeros(0, np.int32)
    tell("counting", 1.0)
    found = [
        discounts_from(rules.smoothing, numbers, rules.interpolate)
        for numbers in numbers_for_discounts(grams, counts, rules.smoothing, desk)
    ]
    maker = _Maker(rules, desk, counts.vocab_size)
    levels: list[Level] = [maker.words(grams[0], found[0])]
    for order in range(2, counts.order + 1):
        gamma, level = maker.level(order, grams[order - 1], grams[order - 2], found[order - 1])
        levels[-1].gamma = gamma
        levels.append(level)
        tell("estimating", order / counts.order)
    return Estimate(levels, found, maker.root, [len(part) for part in grams])


class _Maker:
    """Makes the levels, from the words on.

    root  the weight of 1 / n_base under the words, and n_base, the tokens that share it.
    seen  of the order before, where models back off: p of the last word of each n-gram.
    kept  of the order before: which n-grams were not dropped; None for all.
    """

    def __init__(self, rules: Rules, desk: Desk, vocab_size: int) -> None:
        self.rules, self.desk, self.vocab_size = rules, desk, vocab_size
        self.root = (0.0, 1)
        self.seen = np.zeros(0)
        self.kept: np.ndarray | None = None

    def words(self, part: Grams, found: Discounts) -> Level:
        """The words' own values; the weight of the uniform distribution below them becomes `root`."""
        rules, counts = self.rules, part.counts(slice(None))
        n_base = int((part.raw > 0).sum()) if rules.closed else self.vocab_size
        total = float(counts.sum())
        more = float(extra(rules.smoothing, rules.k, n_base, lambda: (counts > 0).sum()))
        mass = float(found.of(counts).sum()) + more
        self.root = (mass / (total + more), n_base)
        if not rules.interpolate:
            self.seen = (counts - found.of(counts)) / (total + more) + mass / (total + more) / n_base
        context, denominators = np.zeros(len(counts), np.int64), np.full(1, total + more)
        alpha = _alpha(*coded(_pairs(counts, context, denominators, denominators)), denominators, found)
        return Level(torch.zeros(0, dtype=torch.int64), alpha, empty_values(), self.vocab_size)

    def level(self, order: int, part: Grams, shorter: Grams, found: Discounts) -> tuple[Values, Level]:
        """gamma of the n-grams one shorter that are kept, and the level of these."""
        is_kept = self.rules.dropped(order) > 0
        gammas, sums, seen = (self.desk.spool(np.float64) for _ in range(3))
        different = np.zeros(0)
        for rows, contexts in self._by_context(part, len(shorter)):
            denominator, gamma, own = self._shares(order, part, shorter, found, rows, contexts)
            sums.append(denominator)
            gammas.append(gamma if self.kept is None else gamma[self.kept[contexts]])
            seen.append(own)
            different = np.union1d(different, denominator)
            part.release()
            shorter.release()
        values = _values(gammas.array(), self.desk)
        alpha = self._alpha(order, part, sums.array(), different, found, len(shorter))
        keys = self._keys(order, part) if is_kept or self.kept is not None else part.keys
        self.seen = seen.array()
        self.kept = self._all_kept(order, part) if is_kept else None
        return values, Level(torch.from_numpy(keys), alpha, empty_values(), self.vocab_size)

    def _by_context(self, part: Grams, n_contexts: int) -> Iterator[tuple[slice, slice]]:
        """N-grams in parts, none of which cuts the n-grams of one context, and the contexts of each part."""
        first = context = 0
        while True:
            last = first + self.desk.at_once
            if last >= len(part):
                last, stop = len(part), n_contexts
            else:
                stop = int(part.keys[last]) // self.vocab_size
                border = int(part.keys.searchsorted(stop * self.vocab_size))
                if border == first:
                    stop += 1
                    border = int(part.keys.searchsorted(stop * self.vocab_size))
                last = border
            yield slice(first, last), slice(context, stop)
            if last == len(part) and stop == n_contexts:
                return
            first, context = last, stop

    def _shares(
        self, order: int, part: Grams, shorter: Grams, found: Discounts, rows: slice, contexts: slice
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Denominator and gamma of contexts, and, where models back off, p of the last word of their n-grams."""
        rules, size = self.rules, contexts.stop - contexts.start
        counts = part.counts(rows)
        context = part.keys[rows] // self.vocab_size - contexts.start
        kept = part.raw[rows] > rules.dropped(order)
        discount = found.of(counts)
        mass = _sums(context, discount if kept.all() else np.where(kept, discount, counts), size)
        denominator = _sums(context, counts, size)
        more = extra(rules.smoothing, rules.k, self.root[1], lambda: np.bincount(context, minlength=size))
        mass = mass + more  # not in place: where there is nothing, bincount gives whole numbers
        denominator = denominator + more
        seen = np.zeros(0)
        if not rules.interpolate:
            below = gathered(self.seen, part.suffix[rows])
            mass, denominator = _back_off(context[kept], below[kept], (counts - discount)[kept], (mass, denominator))
            seen = (counts - discount) / denominator[context]
        # 1 where nothing followed; where all that followed was dropped this is 1 of itself.
        gamma = np.divide(mass, denominator, out=np.ones(size), where=denominator > 0)
        return denominator, gamma, seen

    def _alpha(
        self,
        order: int,
        part: Grams,
        denominators: np.ndarray,
        different: np.ndarray,
        found: Discounts,
        n_contexts: int,
    ) -> Values:
        def pairs() -> Iterator[np.ndarray]:
            for rows, contexts in self._by_context(part, n_contexts):
                counts, context = part.counts(rows), part.keys[rows] // self.vocab_size - contexts.start
                if self.rules.dropped(order) > 0:
                    kept = part.raw[rows] > self.rules.dropped(order)
                    counts, context = counts[kept], context[kept]
                yield _pairs(counts, context, denominators[contexts], different)
                part.release()
                release(denominators)

        return _alpha(*coded_in_parts(pairs, self.desk.spool), different, found)

    def _keys(self, order: int, part: Grams) -> np.ndarray:
        """Keys of the n-grams that are kept, with their contexts renumbered."""
        keys = self.desk.spool(np.int64)
        read = numbered = 0  # contexts so far, and those of them that are kept
        for rows in self.desk.parts(len(part)):
            key = part.keys[rows][part.raw[rows] > self.rules.dropped(order)]
            if self.kept is not None and len(key):
                context = key // self.vocab_size
                here = self.kept[read : int(context[-1]) + 1]
                key += (np.cumsum(here)[context - read] - 1 + numbered - context) * self.vocab_size
                read, numbered = int(context[-1]), numbered + int(here[:-1].sum())
            keys.append(key)
            part.release()
        return keys.array()

    def _all_kept(self, order: int, part: Grams) -> np.ndarray:
        found = [part.raw[rows] > self.rules.dropped(order) for rows in self.desk.parts(len(part))]
        part.release()
        return np.concatenate([np.zeros(0, bool), *found])


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


def _pairs(counts: np.ndarray, context: np.ndarray, denominators: np.ndarray, different: np.ndarray) -> np.ndarray:
    """Of each n-gram the pair of its count and its denominator, as one number."""
    rank = np.searchsorted(different, denominators)
    return counts * np.int64(len(different)) + rank[context]


def _alpha(codes: torch.Tensor, pairs: np.ndarray, different: np.ndarray, found: Discounts) -> Values:
    """(c - D(c)) / denominator, coded by the different pairs of count and denominator."""
    counts, totals = pairs // len(different), different[pairs % len(different)]
    table = np.divide(counts - found.of(counts), totals, out=np.zeros(len(pairs)), where=totals > 0)
    return Values(codes, *(torch.from_numpy(values) for values in (table, counts, totals)))


def _values(numbers: np.ndarray, desk: Desk) -> Values:
    def parts() -> Iterator[np.ndarray]:
        for rows in desk.parts(len(numbers)):
            yield numbers[rows]
            release(numbers)

    codes, table = coded_in_parts(parts, desk.spool)
    return Values(codes, torch.from_numpy(table))


def _sums(place: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Sums of weights by place, float64 also where there is nothing to sum."""
    return np.bincount(place, weights, size).astype(np.float64, copy=False)


def notes(found: Estimate) -> list[str]:
    """What a person should know of the discounts, in one sentence."""
    undefined = {order: discount for order, discount in enumerate(found.discounts, 1) if discount.fallback}
    if not undefined:
        return []
    orders = ", ".join(map(str, undefined))
    first, discount = next(iter(undefined.items()))
    return [
        f"order {orders}: Kneser-Ney discounts are estimated from how many n-grams occur once, twice and so on, and "
        f"here there are too few to tell (of order {first}, {discount.fallback}): {discount.one:g}, {discount.two:g} "
        f"and {discount.more:g} are taken instead; smoothing = witten_bell needs none"
    ]
