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

from regard.core.workers import ThisProcess, Workers
from regard.ngram.coding import coded, coded_in_parts
from regard.ngram.counts import DEFAULT_MEMORY, Counts
from regard.ngram.gram import Desk, Grams, adjusted, grams_of
from regard.ngram.level import Level, Values, empty_values
from regard.ngram.shares import Pairer, Rules, Sharer, Sliced, pairs
from regard.ngram.smoothing import CONTINUATION, Discounts, discounts_from, extra, numbers_for_discounts
from regard.ngram.spill import shipped


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
    workers: Workers | None = None,
) -> Estimate:
    """The levels of a model. `tell` hears what is being done and how much of it is done.

    memory   bytes to work in, about, beside some sixty for each token of the vocabulary. What needs more goes to files
             in `folder` (the system's for temporary files when not given); the levels are then mapped from them.
    workers  who works, each in so much memory; of other processes than this one `folder` must be one that is theirs.
    """
    desk = Desk(memory, folder, workers or ThisProcess())
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
        alpha = _alpha(*coded(pairs(counts, context, denominators, denominators)), denominators, found)
        return Level(torch.zeros(0, dtype=torch.int64), alpha, empty_values(), self.vocab_size)

    def level(self, order: int, part: Grams, shorter: Grams, found: Discounts) -> tuple[Values, Level]:
        """gamma of the n-grams one shorter that are kept, and the level of these."""
        is_kept = self.rules.dropped(order) > 0
        gammas, sums, seen = (self.desk.spool(np.float64) for _ in range(3))
        different = np.zeros(0)
        ranges = list(self._by_context(part, len(shorter)))
        sharer = Sharer(self.rules, order, self.vocab_size, self.root[1], part.shipped(), found, shipped(self.seen))
        for (_, contexts), shares in zip(ranges, self.desk.workers.map(sharer, ranges), strict=True):
            denominator, gamma, own = shares
            sums.append(denominator)
            gammas.append(gamma if self.kept is None else gamma[self.kept[contexts]])
            seen.append(own)
            different = np.union1d(different, denominator)
        values = _values(gammas.array(), self.desk)
        pairer = Pairer(
            self.vocab_size, self.rules.dropped(order), part.shipped(), shipped(sums.array()), shipped(different)
        )
        alpha = _alpha(*coded_in_parts(pairer, ranges, self.desk.workers, self.desk.spool), different, found)
        keys = self._keys(order, part) if is_kept or self.kept is not None else part.keys
        self.seen = seen.array()
        self.kept = self._all_kept(order, part) if is_kept else None
        part.release()
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


def _alpha(codes: np.ndarray, pairs: np.ndarray, different: np.ndarray, found: Discounts) -> Values:
    """(c - D(c)) / denominator, coded by the different pairs of count and denominator."""
    counts, totals = pairs // len(different), different[pairs % len(different)]
    table = np.divide(counts - found.of(counts), totals, out=np.zeros(len(pairs)), where=totals > 0)
    return Values(*map(torch.from_numpy, (codes, table, counts, totals)))


def _values(numbers: np.ndarray, desk: Desk) -> Values:
    codes, table = coded_in_parts(Sliced(shipped(numbers)), list(desk.parts(len(numbers))), desk.workers, desk.spool)
    return Values(torch.from_numpy(codes), torch.from_numpy(table))


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
