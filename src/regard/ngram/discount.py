"""The numbers that discounts are estimated from: how many n-grams of each order occur once, twice and so on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from regard.ngram.counts import NEVER, Counts
from regard.ngram.gram import Desk, Grams
from regard.ngram.smoothing import CONTINUATION, Smoothing, histogram
from regard.ngram.spill import gathered


def numbers_for_discounts(grams: list[Grams], table: Counts, smoothing: Smoothing, desk: Desk) -> Iterator[np.ndarray]:
    """How many n-grams of each order have each small count, as KenLM counts them, so that both agree to the last digit.

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
            ending = _ending(part, last, desk)
            first = _first_words(grams, order, ending, table.vocab_size)
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
