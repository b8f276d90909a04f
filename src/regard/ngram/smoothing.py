"""How counts become probabilities: every smoothing in one form.

    p(w | h) = alpha(h w) + gamma(h) p(w | h')                    interpolated
    p(w | h) = alpha(h w) when h w was seen, else beta(h) p(w | h')     back-off
    alpha(h w) = (c(h w) - D(c)) / (c(h .) + E(h))
    gamma(h)   = (sum over w of D(c(h w)) + E(h)) / (c(h .) + E(h))

    mle           D = 0, E = 0                             maximum likelihood
    add_k         D = 0, E = k V, and p(w | h') is 1 / V    Laplace for k = 1
    witten_bell   D = 0, E = number of different w after h           Witten and Bell 1991
    absolute      one D = n1 / (n1 + 2 n2), E = 0                   Ney, Essen and Kneser 1994
    kneser_ney    the same over continuation counts                 Kneser and Ney 1995
    modified_kneser_ney   D1, D2 and D3+, over continuation counts  Chen and Goodman 1998
    given         alpha and beta as another program estimated them, read from an ARPA file; nothing is counted

Below everything, p(w) is interpolated with 1 / V. A context that was never seen passes on to the shorter one.

Glossary
h, h'     the words before w, and the same without the first of them
c(h .)    sum of c(h w) over w
n1 .. n4  n-grams of this order with a count of 1 .. 4
D(c)      what is taken off a count of c, given to words not seen after h
continuation count   for orders below the highest: the number of different words seen before an n-gram, except that
                     one that begins a sentence, which has nothing before it, keeps its count
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.ngram.counts import NEVER, Counts
from regard.ngram.gram import Desk, Grams
from regard.ngram.spill import gathered

Smoothing = Literal["mle", "add_k", "witten_bell", "absolute", "kneser_ney", "modified_kneser_ney", "given"]
CONTINUATION = ("kneser_ney", "modified_kneser_ney")
# What KenLM takes when asked to go on with undefined discounts.
FALLBACK = (0.5, 1.0, 1.5)
TIMES = {1: "once", 2: "twice", 3: "three times"}


@dataclass(frozen=True)
class Discounts:
    """What is taken off a count of 1, of 2, and of 3 or more.

    fallback  why the text does not define them and FALLBACK was taken; empty otherwise.
    """

    one: float = 0.0
    two: float = 0.0
    more: float = 0.0
    fallback: str = ""

    def of(self, counts: np.ndarray) -> np.ndarray:
        """D(c) for every count."""
        return np.array([0.0, self.one, self.two, self.more])[np.minimum(counts, 3)]


def discounts(smoothing: Smoothing, counts: np.ndarray, interpolate: bool = True) -> Discounts:
    """The discounts of one order from its counts."""
    return discounts_from(smoothing, histogram(counts), interpolate)


def histogram(counts: np.ndarray) -> np.ndarray:
    """How many counts are 0, 1 .. 4, and 5 or more, (6,)."""
    return np.bincount(np.minimum(counts, 5), minlength=6)


def discounts_from(smoothing: Smoothing, numbers: np.ndarray, interpolate: bool = True) -> Discounts:
    """The discounts of one order from the histogram of its counts."""
    if smoothing not in ("absolute", *CONTINUATION):
        return Discounts()
    n = numbers[1:5].tolist()
    if smoothing == "modified_kneser_ney":
        return _modified(n, interpolate)
    if n[0] == 0 or n[1] == 0:
        missing, half = 1 if n[0] == 0 else 2, FALLBACK[0]
        return Discounts(half, half, half, f"no n-gram occurs exactly {TIMES[missing]}")
    one = n[0] / (n[0] + 2 * n[1])
    return Discounts(one, one, one)


def _modified(n: list[int], interpolate: bool) -> Discounts:
    """D_j = j - (j + 1) Y n_(j+1) / n_j with Y = n1 / (n1 + 2 n2).

    D_j = j takes all of a count. Interpolation adds to what is left; a model that backs off would call a word that it
    saw impossible.
    """
    for j in (1, 2, 3):
        if n[j - 1] == 0:
            return Discounts(*FALLBACK, f"no n-gram occurs exactly {TIMES[j]}")
    y = n[0] / (n[0] + 2 * n[1])
    found = [j - (j + 1) * y * n[j] / n[j - 1] for j in (1, 2, 3)]
    for j, discount in enumerate(found, 1):
        if not 0 <= discount <= j or (discount == j and not interpolate):
            return Discounts(*FALLBACK, f"a count of {j} would be discounted by {discount:.3g}")
    one, two, more = found
    return Discounts(one, two, more)


def extra(smoothing: Smoothing, k: float, vocab_size: int, different: Callable[[], np.ndarray]) -> np.ndarray | float:
    """E(h). `different` counts the different words after each h, where that is asked for."""
    if smoothing == "add_k":
        return k * vocab_size
    return different() if smoothing == "witten_bell" else 0.0


def numbers_for_discounts(
    grams: list[Grams], counted: Counts, smoothing: Smoothing, desk: Desk
) -> Iterator[np.ndarray]:
    """How many n-grams of each order have each small count, as KenLM counts them, so that both agree to the last digit.

    KenLM walks through n-grams by their last word, words in the order in which the text brings them up, and for the
    very last n-gram of an order below the highest it takes the count itself instead of the continuation count.
    """
    last = None
    rank = np.zeros(0)
    if smoothing in CONTINUATION and counted.first is not None:
        rank = np.where(counted.first == NEVER, -1, counted.first)
        rank[counted.eos_id] = -1  # </s> comes before the words, <s> before everything
        last = int(np.argmax(rank))
    for order, part in enumerate(grams, 1):
        if last is not None and order > 1:
            ending = _ending(part, last, desk)
            first = _first_words(grams, order, ending, counted.vocab_size)
            last = int(ending[np.argmax(rank[first])]) if len(ending) else None
        numbers = np.zeros(6, np.int64)
        for rows in desk.parts(len(part)):
            numbers += histogram(part.counts(rows))
            part.release()
        if last is not None and order < len(grams):
            one = slice(last, last + 1)
            numbers += histogram(part.raw[one]) - histogram(part.counts(one))
        yield numbers


def _ending(part: Grams, last: int, desk: Desk) -> np.ndarray:
    """The n-grams that end with the n-gram `last` of the order below."""
    found = [rows.start + np.flatnonzero(part.suffix[rows] == last) for rows in desk.parts(len(part))]
    part.release()
    return np.concatenate([np.zeros(0, np.int64), *found])


def _first_words(grams: list[Grams], order: int, places: np.ndarray, vocab_size: int) -> np.ndarray:
    """The first tokens of n-grams."""
    for longer in reversed(grams[1:order]):
        places = gathered(longer.keys, places) // vocab_size
    return places
