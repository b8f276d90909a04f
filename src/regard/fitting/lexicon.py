"""The lexicon of IBM Model 1: how words translate, counted without anybody saying which belongs to which (Brown,
Della Pietra, Della Pietra, Mercer 1993, section 4.1).

    p(y_1 .. y_m | x_1 .. x_l) is proportional to  prod_i 1/l sum_j t(y_i | x_j)

    E   p(a_i = j | x, y) = t(y_i | x_j) / sum_k t(y_i | x_k)          to which x_j each y_i belongs: a soft alignment
    M   t(y | x) = c(y, x) / sum_v c(v, x)                             c: the sum of those over all pairs of texts

    n(x)  how often x occurs; phi(x) = sum_v c(v, x) / n(x), how many words it brings: its fertility

One of the x_j is the empty word, to which words without a source belong. The likelihood is concave in t, so that from
equal beginnings every step raises it, and no start is better than another. Words that never meet have t = 0 from the
first step on: only those that do are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regard.fitting.spans import places

AT_ONCE = 1 << 22  # pairs of words that are looked at together


class Texts(NamedTuple):
    """Words of all texts, end to end, and where each text begins, with the end of the last."""

    values: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words y first[x] .. first[x + 1] - 1 of `words` have met x, and t (P,) is how likely x becomes each.

    fertility       phi(x), 0 of what never occurred.
    log_likelihood  of the texts before every step and after the last, in nats.
    """

    first: np.ndarray
    words: np.ndarray
    t: np.ndarray
    fertility: np.ndarray
    log_likelihood: tuple[float, ...]

    def pruned(self, least: float) -> Lexicon:
        """Without what is less likely than `least`, brought to a sum of 1 again."""
        row = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        kept = self.t >= least
        first = np.concatenate([[0], np.cumsum(kept)])[self.first]
        t, row = self.t[kept], row[kept]
        total = np.bincount(row, t, minlength=len(self.first) - 1)
        return Lexicon(first, self.words[kept], t / total[row], self.fertility, self.log_likelihood)


class _Meetings(NamedTuple):
    """Some pairs of words that met. place (E,): of each in the lexicon. begins (M,): of each target word's first one.

    sizes (M,): how many words each may belong to.
    """

    place: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray


def expectation_maximisation(
    source: Texts,
    target: Texts,
    n_source: int,
    n_target: int,
    iterations: int,
    memory: int,
    tell: Callable[[float], None] = lambda _: None,
) -> Lexicon:
    """The lexicon of pairs of texts after so many steps. memory: bytes for what need not be made again."""
    keys = _distinct(source, target, n_target)
    x_of = keys // n_target
    t = np.full(len(keys), 1 / max(1, n_target))
    n_meetings = int((np.diff(source.starts) * np.diff(target.starts)).sum())
    kept = list(_meetings(source, target, n_target, keys)) if 8 * n_meetings < memory // 4 else None
    likelihoods, totals = [], np.zeros(n_source)
    for step in range(iterations + 1):
        counts, log_likelihood = np.zeros(len(keys)), 0.0
        for part in kept or _meetings(source, target, n_target, keys):
            p = t[part.place]
            sums = np.add.reduceat(p, part.begins)
            log_likelihood += float(np.log(sums / part.sizes).sum())
            if step < iterations:
                counts += np.bincount(part.place, p / np.repeat(sums, part.sizes), minlength=len(keys))
        likelihoods.append(log_likelihood)
        if step < iterations:
            totals = np.bincount(x_of, counts, minlength=n_source)
            t = counts / totals[x_of]
        tell((step + 1) / (iterations + 1))
    first = np.searchsorted(keys, np.arange(n_source + 1) * np.int64(n_target))
    occurs = np.bincount(source.values, minlength=n_source)
    return Lexicon(first, keys - x_of * n_target, t, totals / np.maximum(1, occurs), tuple(likelihoods))


def _distinct(source: Texts, target: Texts, n_target: int) -> np.ndarray:
    """x * n_target + y of every x and y that met, rising."""
    found = np.zeros(0, np.int64)
    for keys, _, _ in _parts(source, target, n_target):
        found = np.union1d(found, keys)
    return found


def _meetings(source: Texts, target: Texts, n_target: int, keys: np.ndarray) -> Iterator[_Meetings]:
    for met, begins, sizes in _parts(source, target, n_target):
        place = np.searchsorted(keys, met)
        yield _Meetings(place.astype(np.int32 if len(keys) < 1 << 31 else np.int64), begins, sizes)


def _parts(source: Texts, target: Texts, n_target: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The keys of words that met, some texts at a time, all of one target word together."""
    lengths = np.diff(source.starts), np.diff(target.starts)
    ends = np.cumsum(lengths[0] * lengths[1])
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + AT_ONCE, side="right")))
        sizes = np.repeat(lengths[0][first:last], lengths[1][first:last])  # of each target word
        begin = np.repeat(source.starts[first:last], lengths[1][first:last])
        words = target.values[target.starts[first] : target.starts[last]].astype(np.int64)
        words, begin, sizes = words[sizes > 0], begin[sizes > 0], sizes[sizes > 0]
        met = source.values[places(begin, sizes)].astype(np.int64)
        if len(met):
            yield met * n_target + np.repeat(words, sizes), np.cumsum(sizes) - sizes, sizes
        first = last
