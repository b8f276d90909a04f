"""TagLexicon: which tags each word was met with, and how often.

n_(w,c)   how often word w has tag c; kept are only the pairs that were met
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.fitting.grams import Vocabulary
from regard.fitting.spans import places


@dataclass(frozen=True, eq=False)
class TagLexicon:
    """words: those that were met. starts (V + 1,): where the tags of each begin. tags, counts (P,): of all of them."""

    words: Vocabulary
    starts: np.ndarray
    tags: np.ndarray
    counts: np.ndarray

    def rows(self, words: Sequence[str], n_tags: int) -> tuple[np.ndarray, np.ndarray]:
        """n_(w,c) of some words, (n, C) float64, and which of them were met at all, (n,)."""
        found = self.words.found(words)
        known = found >= 0
        rows, made = found[known], np.zeros((len(words), n_tags))
        sizes = self.starts[rows + 1] - self.starts[rows]
        row_of = np.repeat(np.flatnonzero(known), sizes)
        at = places(self.starts[rows], sizes)
        made[row_of, self.tags[at]] = self.counts[at]
        return made, known

    @property
    def totals(self) -> np.ndarray:
        """How often each word was met, (V,)."""
        return np.add.reduceat(self.counts, self.starts[:-1]) if len(self.words) else np.zeros(0, np.int64)

    def of_tags(self, n_tags: int, chosen: np.ndarray | None = None) -> np.ndarray:
        """How often each tag was met, (C,), with all words or with those that are True in `chosen` (V,)."""
        use = np.ones(len(self.words), bool) if chosen is None else chosen
        stays = np.repeat(use, np.diff(self.starts))
        return np.bincount(self.tags[stays], self.counts[stays], minlength=n_tags)


def lexicon(words: Sequence[str], tags: np.ndarray, n_tags: int) -> TagLexicon:
    """The lexicon of words with their tags (N,)."""
    vocabulary = Vocabulary()
    pairs, counts = np.unique(vocabulary.added(words) * n_tags + tags, return_counts=True)
    rows, found = np.divmod(pairs, n_tags)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(vocabulary)))]).astype(np.int64)
    return TagLexicon(vocabulary, starts, found.astype(np.int64), counts.astype(np.int64))
