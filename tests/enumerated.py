"""Chains of tags by counting out every way to tag a sentence: what the recursions are compared with."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor

Score = Callable[[tuple[int, ...]], Tensor]


class Ways:
    """Every way to tag n words with C tags, and its score."""

    def __init__(self, n_words: int, n_tags: int, score: Score) -> None:
        self.ways = list(itertools.product(range(n_tags), repeat=n_words))
        self.scores = torch.stack([score(way) for way in self.ways])
        self.n_words, self.n_tags = n_words, n_tags

    @property
    def log_z(self) -> Tensor:
        return self.scores.logsumexp(0)

    @property
    def best(self) -> list[int]:
        return list(self.ways[int(self.scores.argmax())])

    @property
    def chances(self) -> Tensor:
        """p of each tag of each word, (T, C)."""
        found = torch.zeros(self.n_words, self.n_tags, dtype=torch.float64)
        for way, chance in zip(self.ways, (self.scores - self.log_z).exp(), strict=True):
            for place, tag in enumerate(way):
                found[place, tag] += chance
        return found


def chain_score(emissions: Tensor, between: Tensor, start: Tensor, end: Tensor) -> Score:
    """score(y | x) of a chain in which a tag looks at the one before it."""

    def score(way: tuple[int, ...]) -> Tensor:
        words = sum((emissions[place, tag] for place, tag in enumerate(way)), torch.zeros((), dtype=torch.float64))
        return words + sum(between[a, b] for a, b in itertools.pairwise(way)) + start[way[0]] + end[way[-1]]

    return score
