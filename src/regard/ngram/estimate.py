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
    """The n-grams of one order while they are worked on.

    raw     how often each occurred; counts is what it is estimated from.
    begins  whether it begins a sentence.
    seen    p of its last word, where something is backed off to it.
    """

    keys: np.ndarray
    context: np.ndarray
    raw: np.ndarray
    begins: np.ndarray
    suffix: np.ndarray
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.raw)

    def forget(self) -> None:
        """Let go of what is not needed any more: the arrays of all orders together are the most that is ever held."""
        self.context = self.raw = self.begins = self.suffix = self.counts = self.seen = np.zeros(0, np.int32)


def estimate(counts: Counts, rules: Rules, tell: Callable[[str, float], None] = lambda *_: None) -> Estimate:
    """The levels of a model. `tell` hears what is being done and how much of it is done."""
    grams = []
    for order, found in enumerate(_orders(counts), 1):
        grams.append(found)
        tell("counting", order / counts.order)
    n_grams = [len(part) for part in grams]
    _adjust(grams, rules.smoothing in CONTINUATION)
    known = _counts_for_discounts(grams, counts, rules.smoothing)
    found = [discounts(rules.smoothing, part, rules.interpolate) for part in known]
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
        if order > 1:
            grams[order - 2].forget()
        tell("estimating", order / counts.order)
    return Estimate(levels, found, root, n_grams)


def _orders(table: Counts) -> Iterator[_Grams]:
    """The n-grams of order 1, 2 and so on with their raw counts."""
    yield _unigrams(table)
    differs = np.ones(len(table), bool)
    differs[1:] = table.columns[0][1:] != table.columns[0][:-1]
    places = table.columns[0].astype(np.int32) - 1
    keys = np.zeros(0, np.int64)
    suffixes = np.zeros(0, np.int32)
    for order in range(2, table.order + 1):
        column = table.columns[order - 1]
        differs[1:] |= column[1:] != column[:-1]
        new = differs & (column != 0)
        rows = np.flatnonzero(new)
        raw = np.add.reduceat(np.where(column != 0, table.counts, 0), rows) if len(rows) else np.zeros(0, np.int64)
        raw = _narrow(raw)
        context, word = places[rows], column[rows].astype(np.int64) - 1
        begins = table.columns[0][rows] == table.eos_id + 1
        del rows
        suffix = word if order == 2 else _places(keys, suffixes[context] * np.int64(table.vocab_size) + word)
        keys, suffixes = context * np.int64(table.vocab_size) + word, _narrow(suffix)
        yield _Grams(keys, context, raw, begins, suffixes)
        if order < table.order:
            places = _narrow(np.cumsum(new)) - 1


def _unigrams(table: Counts) -> _Grams:
    """Tokens. The beginning of a sentence is a context and no token: it is not counted as one."""
    first = table.columns[0].astype(np.int64) - 1
    weights = table.counts
    if table.order > 1:
        weights = np.where((first == table.eos_id) & (table.columns[1] != 0), 0, weights)
    raw = np.bincount(first, weights, minlength=table.vocab_size).astype(np.int64)
    nothing = np.zeros(table.vocab_size, np.int32)
    return _Grams(np.arange(table.vocab_size), nothing, raw, np.zeros(table.vocab_size, bool), nothing)


def _adjust(grams: list[_Grams], continuation: bool) -> None:
    """Give every order the counts it is estimated from."""
    for part, longer in zip(grams, [*grams[1:], None], strict=True):
        if longer is None or not continuation:
            part.counts = part.raw
        else:
            left = np.bincount(longer.suffix, minlength=len(part))
            part.counts = np.where(part.begins, part.raw, left).astype(part.raw.dtype)


def _counts_for_discounts(grams: list[_Grams], table: Counts, smoothing: Smoothing) -> Iterator[np.ndarray]:
    """The counts of each order as KenLM counts them for its discounts, so that both agree to the last digit.

    KenLM walks through n-grams by their last word, words in the order in which the text brings them up, and for the
    very last n-gram of an order below the highest it takes the count itself instead of the continuation count.
    """
    last = None
    rank = np.zeros(0)
    if smoothing in CONTINUATION and table.first is not None:
        rank = np.where(table.first == NEVER, -1, table.first)
        rank[table.eos_id] = -1  # </s> comes before the words, <s> before everything
        last = int(np.argmax(rank))
    for order, part in enumerate(grams, 1):
        if last is not None and order > 1:
            ending = np.flatnonzero(part.suffix == last)
            last = int(ending[np.argmax(rank[_first_words(grams, order, ending)])]) if len(ending) else None
        counts = part.counts
        if last is not None and order < len(grams):
            counts = counts.copy()
            counts[last] = part.raw[last]
        yield counts


def _first_words(grams: list[_Grams], order: int, places: np.ndarray) -> np.ndarray:
    """The first tokens of n-grams."""
    for longer in reversed(grams[1:order]):
        places = longer.context[places]
    return places


def _words(part: _Grams, found: Discounts, rules: Rules, vocab_size: int) -> tuple[Values, tuple[float, int]]:
    """The words' own values, and the weight of the uniform distribution below them with the number of its tokens."""
    n_base = int((part.raw > 0).sum()) if rules.closed else vocab_size
    total = float(part.counts.sum())
    more = float(extra(rules.smoothing, rules.k, n_base, lambda: (part.counts > 0).sum()))
    mass = float(found.of(part.counts).sum()) + more
    part.seen = (part.counts - found.of(part.counts)) / (total + more) + mass / (total + more) / n_base
    return _alpha(part.counts, part.context, np.full(1, total + more), found), (mass / (total + more), n_base)


def _probabilities(
    part: _Grams, shorter: _Grams, kept: np.ndarray, found: Discounts, rules: Rules, n_base: int
) -> tuple[Values, np.ndarray]:
    """alpha of the n-grams that are kept, and gamma of all n-grams one shorter."""
    n_contexts = len(shorter)
    whole = bool(kept.all())
    discount = found.of(part.counts)
    mass = _sums(part.context, discount if whole else np.where(kept, discount, part.counts), n_contexts)
    denominator = _sums(part.context, part.counts, n_contexts)
    more = extra(rules.smoothing, rules.k, n_base, lambda: np.bincount(part.context, minlength=n_contexts))
    mass = mass + more  # not in place: where there is nothing, bincount gives whole numbers
    denominator = denominator + more
    if not rules.interpolate:
        mass, denominator = _back_off(part, shorter, kept, discount, (mass, denominator))
    # 1 where nothing followed; where all that followed was dropped this is 1 of itself.
    gamma = np.divide(mass, denominator, out=np.ones(n_contexts), where=denominator > 0)
    if not rules.interpolate:
        part.seen = (part.counts - discount) / denominator[part.context]
    del mass, discount
    counts, context = (part.counts, part.context) if whole else (part.counts[kept], part.context[kept])
    return _alpha(counts, context, denominator, found), gamma


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


def _alpha(counts: np.ndarray, context: np.ndarray, denominators: np.ndarray, found: Discounts) -> Values:
    """(c - D(c)) / denominator, coded by the different pairs of count and denominator."""
    different = np.unique(denominators)
    rank = np.searchsorted(different, denominators).astype(np.int32)
    codes, pairs = coded(counts * np.int64(len(different)) + rank[context])
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
    context, word = part.context[keep], part.keys[keep] % vocab_size
    if order > 2:
        context = (np.cumsum(kept[order - 2]) - 1)[context]
    return torch.from_numpy(context * np.int64(vocab_size) + word)


def _sums(place: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Sums of weights by place, float64 also where there is nothing to sum."""
    return np.bincount(place, weights, size).astype(np.float64, copy=False)


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """In 32 bits where they fit: half the memory."""
    return numbers.astype(np.int32) if len(numbers) == 0 or int(numbers.max()) < 1 << 31 else numbers


def _places(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where keys stand that are known to be there. torch searches with both cores."""
    return torch.searchsorted(torch.from_numpy(keys), torch.from_numpy(wanted)).numpy()
