"""Word alignments against gold links (source word, target word), both counted from 0.

    AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)      Och and Ney 2003, section 2.5

Glossary
A  links found
S  sure links, which an alignment must have
P  possible links, which it may have; every sure link is one
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from regard.errors import DataError

Link = tuple[int, int]


def alignment_error_rate(
    found: Sequence[Collection[Link]],
    sure: Sequence[Collection[Link]],
    possible: Sequence[Collection[Link]] | None = None,
) -> float:
    """AER over all sentences together, 0 at best; without `possible` the sure links alone are right."""
    allowed = sure if possible is None else possible
    if not len(found) == len(sure) == len(allowed):
        raise DataError(f"links of {len(found)} sentences against gold of {len(sure)} and {len(allowed)}; give equal")
    hits, total = 0, 0
    for links, must, may in zip(found, sure, allowed, strict=True):
        A, S = set(links), set(must)
        P = S | set(may)
        hits += len(A & S) + len(A & P)
        total += len(A) + len(S)
    if total == 0:
        raise DataError("there is no link to score: neither the alignments nor their gold have any")
    return 1 - hits / total


def alignment_accuracy(attention: Sequence[np.ndarray], gold: Sequence[Collection[Link]]) -> float:
    """The share of target words whose most attended source word is a gold link.

    attention  weights (T, S) of the words of each pair. Target words without a gold link have no right answer and are
    left out.
    """
    if len(attention) != len(gold):
        raise DataError(f"attention of {len(attention)} sentences against gold of {len(gold)}; give equal numbers")
    right, total = 0, 0
    for weights, links in zip(attention, gold, strict=True):
        right += len(most_attended(weights) & set(links))
        total += len({target for _, target in links})
    if total == 0:
        raise DataError("there is no link to score: the gold alignments are empty")
    return right / total


def most_attended(weights: np.ndarray) -> set[Link]:
    """A link from each target word to the source word of the largest weight; of equal ones the first.

    >>> sorted(most_attended(np.array([[0.1, 0.9], [0.6, 0.4], [0.2, 0.8]])))
    [(0, 1), (1, 0), (1, 2)]
    """
    if weights.ndim != 2 or weights.shape[1] == 0:
        raise DataError(f"attention must have a row of source weights for each target word, found {weights.shape}")
    return {(int(source), target) for target, source in enumerate(weights.argmax(1))}
