"""From counts to levels: the probabilities of every order, by the formulas of `smoothing`.

All of it is passes over sorted arrays. N-grams of every order are read off the one sorted table: a new one begins in a
row that differs from the row before in one of its first columns.

Glossary
context  of an n-gram: the place of its first n - 1 words among the n-grams one shorter
suffix   the place of its last n - 1 words there: what continuation counts are counted over
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from regard.ngram.counts import NEVER, Counts
from regard.ngram.level import Level, Values, coded, empty_values
from regard.ngram.smoothing import CONTINUATION, Discounts, Smoothing, discounts, extra


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


@dataclass
class _Grams:
    """The n-grams of one order while they are worked on."""

    context: np.ndarray
    word: np.ndarray
    raw: np.ndarray
    begins: np.ndarray
    suffix: np.ndarray
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.word)


def estimate(counts: Counts, rules: Rules, tell: Callable[[str, float], None] = lambda *_: None) -> Estimate:
    """The levels of a model. `tell` hears what is being done and how much of it is done."""
    grams = []
    for order, found in enumerate(_orders(counts), 1):
        grams.append(found)
        tell("counting", order / counts.order)
    n_grams = [len(part) for part in grams]
    _adjust(grams, rules.smoothing in CONTINUATION)
    found = [discounts(rules.smoothing, part) for part in _counts_for_discounts(grams, counts, rules.smoothing)]
    kept = [part.raw > rules.dropped(order) for order, part in enumerate(grams, 1)]
    levels: list[Level] = []
    root = (0.0, 1)
    for order, part in enumerate(grams, 1):
        if order == 1:
            alpha, root = _words(part, found[0], rules, counts.vocab_size)
        else:
            alpha, gamma = _probabilities(part, grams[order - 2], kept[order - 1], found[order - 1], rules, root[1])
            levels[-1].gamma = _values(gamma[kept[order - 2]] if order > 2 else gamma)
        levels.append(Level(_keys(grams, kept, order, counts.vocab_size), alpha, empty_values(), counts.vocab_size))
        tell("estimating", order / counts.order)
    return Estimate(levels, found, root, n_grams)


def _orders(table: Counts) -> Iterator[_Grams]:
    """The n-grams of order 1, 2 and so on with their raw counts."""
    yield _unigrams(table)
    differs = np.ones(len(table), bool)
    differs[1:] = table.columns[0][1:] != table.columns[0][:-1]
    places = table.columns[0].astype(np.int64) - 1
    keys = np.zeros(0, np.int64)
    suffixes = np.zeros(0, np.int64)
    for order in range(2, table.order + 1):
        column = table.columns[order - 1]
        differs[1:] |= column[1:] != column[:-1]
        new = differs & (column != 0)
        rows = np.flatnonzero(new)
        context, word = places[rows], column[rows].astype(np.int64) - 1
        raw = np.add.reduceat(np.where(column != 0, table.counts, 0), rows) if len(rows) else np.zeros(0, np.int64)
        begins = table.columns[0][rows] == table.eos_id + 1
        suffix = word if order == 2 else _places(keys, suffixes[context] * table.vocab_size + word)
        keys, suffixes = context * table.vocab_size + word, suffix
        yield _Grams(context, word, raw, begins, suffix, keys)
        if order < table.order:
            places = np.cumsum(new) - 1


def _unigrams(table: Counts) -> _Grams:
    """Tokens. The beginning of a sentence is a context and no token: it is not counted as one."""
    first = table.columns[0].astype(np.int64) - 1
    weights = table.counts
    if table.order > 1:
        weights = np.where((first == table.eos_id) & (table.columns[1] != 0), 0, weights)
    raw = np.bincount(first, weights, minlength=table.vocab_size).astype(np.int64)
    words = np.arange(table.vocab_size)
    nothing = np.zeros(table.vocab_size, np.int64)
    return _Grams(nothing, words, raw, np.zeros(table.vocab_size, bool), nothing)


def _adjust(grams: list[_Grams], continuation: bool) -> None:
    """Give every order the counts it is estimated from."""
    for part, longer in zip(grams, [*grams[1:], None], strict=True):
        if longer is None or not continuation:
            part.counts = part.raw
        else:
            left = np.bincount(longer.suffix, minlength=len(part))
            part.counts = np.where(part.begins, part.raw, left)


def _counts_for_discounts(grams: list[_Grams], table: Counts, smoothing: Smoothing) -> list[np.ndarray]:
    """The counts of each order as KenLM counts them for its discounts, so that both agree to the last digit.

    KenLM walks through n-grams by their last word, words in the order in which the text brings them up, and for the
    very last n-gram of an order below the highest it takes the count itself instead of the continuation count.
    """
    counts = [part.counts for part in grams]
    if smoothing not in CONTINUATION or table.first is None or len(grams) == 1:
        return counts
    rank = np.where(table.first == NEVER, -1, table.first)
    rank[table.eos_id] = -1  # </s> comes before the words, <s> before everything
    last = int(np.argmax(rank))
    for order, part in enumerate(grams[:-1], 1):
        if order > 1:
            ending = np.flatnonzero(part.suffix == last)
            if len(ending) == 0:
                break
            last = int(ending[np.argmax(rank[_first_words(grams, order, ending)])])
        counts[order - 1] = part.counts.copy()
        counts[order - 1][last] = part.raw[last]
    return counts


def _first_words(grams: list[_Grams], order: int, places: np.ndarray) -> np.ndarray:
    """The first tokens of n-grams."""
    for longer in reversed(grams[1:order]):
        places = longer.context[places]
    return places


def _words(part: _Grams, found: Discounts, rules: Rules, vocab_size: int) -> tuple[Values, tuple[float, int]]:
    """The words' own values, and the weight of the uniform distribution below them with the number of its tokens."""
    n_base = int((part.raw > 0).sum()) if rules.closed else vocab_size
    total = float(part.counts.sum())
    more = float(extra(rules.smoothing, rules.k, n_base, np.array([(part.counts > 0).sum()]))[0])
    mass = float(found.of(part.counts).sum()) + more
    part.seen = (part.counts - found.of(part.counts)) / (total + more) + mass / (total + more) / n_base
    denominators = np.full(1, total + more)
    return _alpha(part, np.zeros(len(part), np.int64), denominators, found), (mass / (total + more), n_base)


def _probabilities(
    part: _Grams, shorter: _Grams, kept: np.ndarray, found: Discounts, rules: Rules, n_base: int
) -> tuple[Values, np.ndarray]:
    """alpha of the n-grams that are kept, and gamma of all n-grams one shorter."""
    n_contexts = len(shorter)
    n_children = np.bincount(part.context, minlength=n_contexts)
    discount = found.of(part.counts)
    total = np.bincount(part.context, part.counts, n_contexts)
    more = extra(rules.smoothing, rules.k, n_base, n_children)
    denominator = total + more
    mass = np.bincount(part.context, np.where(kept, discount, part.counts), n_contexts) + more
    if not rules.interpolate:
        mass, denominator = _back_off(part, shorter, kept, discount, (mass, denominator))
    has_children = np.bincount(part.context[kept], minlength=n_contexts) > 0
    gamma = np.ones(n_contexts)
    np.divide(mass, denominator, out=gamma, where=has_children)
    part.seen = (part.counts - discount) / denominator[part.context]
    if rules.interpolate:
        part.seen = part.seen + gamma[part.context] * shorter.seen[part.suffix]
    kept_part = _Grams(*(values[kept] for values in (part.context, part.word, part.raw, part.begins, part.suffix)))
    kept_part.counts = part.counts[kept]
    return _alpha(kept_part, kept_part.context, denominator, found), gamma


def _back_off(
    part: _Grams, shorter: _Grams, kept: np.ndarray, discount: np.ndarray, shares: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Mass and denominator such that what is left over goes to the words that were not seen, and to them only.

    After a context that saw every word nobody is left to take it: there the seen ones share it by their counts.
    """
    mass, denominator = shares
    covered = np.bincount(part.context[kept], shorter.seen[part.suffix][kept], len(shorter))
    left = 1 - covered
    nobody = left < 1e-9
    seen = np.bincount(part.context[kept], (part.counts - discount)[kept], len(shorter))
    denominator = np.where(nobody & (seen > 0), seen, denominator)
    return np.where(nobody, 0.0, mass / np.where(nobody, 1.0, left)), denominator


def _alpha(part: _Grams, context: np.ndarray, denominators: np.ndarray, found: Discounts) -> Values:
    """(c - D(c)) / denominator, coded by the different pairs of count and denominator."""
    different = np.unique(denominators)
    rank = np.searchsorted(different, denominators)
    codes, pairs = coded(part.counts * len(different) + rank[context])
    counts, totals = pairs // len(different), different[pairs % len(different)]
    table = np.divide(counts - found.of(counts), totals, out=np.zeros(len(pairs)), where=totals > 0)
    return Values(codes, *(torch.from_numpy(values) for values in (table, counts, totals)))


def _values(numbers: np.ndarray) -> Values:
    codes, table = coded(numbers)
    return Values(codes, torch.from_numpy(table))


def _keys(grams: list[_Grams], kept: list[np.ndarray], order: int, vocab_size: int) -> torch.Tensor:
    """Keys of the n-grams that are kept, with their contexts renumbered."""
    if order == 1:
        return torch.zeros(0, dtype=torch.int64)
    part, keep = grams[order - 1], kept[order - 1]
    if keep.all() and (order == 2 or kept[order - 2].all()):
        return torch.from_numpy(part.keys)
    context = part.context[keep]
    if order > 2:
        context = (np.cumsum(kept[order - 2]) - 1)[context]
    return torch.from_numpy(context * vocab_size + part.word[keep])


def _places(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where keys stand that are known to be there. torch searches with both cores."""
    return torch.searchsorted(torch.from_numpy(keys), torch.from_numpy(wanted)).numpy()
