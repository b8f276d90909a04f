"""Translations against references: BLEU, chrF and exact match.

    BLEU  brevity penalty times the geometric mean of the n-gram precisions, n = 1 .. 4   Papineni et al. 2002
    chrF  F2 of character n-grams, n = 1 .. 6                                             Popovic 2015

Both come from sacrebleu on cased, detokenised text, over the whole corpus and from 0 to 100. The signature says how
each was computed (Post 2018): two figures may be compared when their signatures are the same.

Word alignments against gold links (source word, target word), both counted from 0.

    AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)      Och and Ney 2003, section 2.5

Glossary
A  links found
S  sure links, which an alignment must have
P  possible links, which it may have; every sure link is one
"""

from __future__ import annotations

import importlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.errors import DataError, UsageError
from regard.evaluation.each import EachScore

# Last source words of a bucket. An empty source has a bucket of its own, and what is longer shares the last one.
EDGES = (0, 10, 20, 30, 40, 50)
CHRF_ORDER = 6
Link = tuple[int, int]


@dataclass(frozen=True)
class LengthBucket:
    """The pairs whose source has so many words."""

    count: int
    bleu: float


@dataclass(frozen=True)
class TranslationScores:
    """Quality of translations, in plain keys.

    exact_match  share of the hypotheses that are their reference, white space around them aside.
    sentences    how many were scored; `empty` of them had an empty hypothesis, which matches nothing and still counts.
    by_length    BLEU by the words of the source, such as "1-10", where the sources were given.
    """

    bleu: float
    chrf: float
    exact_match: float
    sentences: int
    empty: int
    bleu_signature: str
    chrf_signature: str
    by_length: dict[str, LengthBucket] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without what was not measured."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def translation_scores(
    hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
) -> TranslationScores:
    """The scores of hypotheses against one reference each; with the sources also by their length."""
    _require_pairs(hypotheses, references)
    bleu, chrf = _metric("BLEU"), _metric("CHRF")
    whole = bleu.corpus_score(hypotheses, [references]).score
    by_character = chrf.corpus_score(hypotheses, [references]).score
    equal = [left.strip() == right.strip() for left, right in zip(hypotheses, references, strict=True)]
    return TranslationScores(
        bleu=whole,
        chrf=by_character,
        exact_match=sum(equal) / len(equal),
        sentences=len(equal),
        empty=sum(not hypothesis.strip() for hypothesis in hypotheses),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        by_length=None if sources is None else bleu_by_length(hypotheses, references, sources),
    )


def chrf_of_each(hypotheses: Sequence[str], references: Sequence[str]) -> EachScore:
    """The chrF of the corpus by its pairs: it is no mean of theirs, but of their pseudo-values."""
    _require_pairs(hypotheses, references)
    counts = np.array([_grams(*pair) for pair in zip(hypotheses, references, strict=True)], dtype=np.float64)
    total = counts.sum(0)  # (n, 3, orders)
    return EachScore.pseudo(float(_chrf(total[None])[0]), _chrf(total - counts))


def _grams(hypothesis: str, reference: str) -> list[list[int]]:
    """Character n-grams of each order: those of the hypothesis, those of the reference, those they share."""
    texts = ["".join(text.split()) for text in (hypothesis, reference)]
    found = [
        [Counter(text[i : i + n] for i in range(len(text) - n + 1)) for text in texts] for n in range(1, CHRF_ORDER + 1)
    ]
    return [[one.total() for one, _ in found], [two.total() for _, two in found], [(a & b).total() for a, b in found]]


def _chrf(counts: np.ndarray) -> np.ndarray:
    """F2 of mean precision and mean recall over the orders that both sides have, (n, 3, orders) to (n,)."""
    written, wanted, shared = counts[:, 0], counts[:, 1], counts[:, 2]
    both = (written > 0) & (wanted > 0)
    orders = np.maximum(1, both.sum(1))
    precision = np.where(both, shared / np.maximum(1, written), 0).sum(1) / orders
    recall = np.where(both, shared / np.maximum(1, wanted), 0).sum(1) / orders
    below = 4 * precision + recall
    return 100 * np.where(below > 0, 5 * precision * recall / np.where(below > 0, below, 1), 0)


def bleu_by_length(
    hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str], edges: Sequence[int] = EDGES
) -> dict[str, LengthBucket]:
    """BLEU of the pairs in each bucket of source words, short sources first; a bucket without a pair is left out."""
    _require_pairs(hypotheses, references)
    if len(sources) != len(hypotheses):
        raise DataError(f"{len(sources)} sources for {len(hypotheses)} hypotheses; each hypothesis needs its own")
    buckets: dict[int, list[int]] = {}
    for row, source in enumerate(sources):
        buckets.setdefault(bisect_left(edges, len(source.split())), []).append(row)
    bleu = _metric("BLEU")
    found = {}
    for number, rows in sorted(buckets.items()):
        some, others = [hypotheses[row] for row in rows], [references[row] for row in rows]
        found[_name(number, edges)] = LengthBucket(len(rows), bleu.corpus_score(some, [others]).score)
    return found


def _name(number: int, edges: Sequence[int]) -> str:
    """
    >>> [_name(number, (0, 10, 20)) for number in range(4)]
    ['0', '1-10', '11-20', '21+']
    """
    first = edges[number - 1] + 1 if number else 0
    if number == len(edges):
        return f"{first}+"
    return str(first) if first == edges[number] else f"{first}-{edges[number]}"


def _require_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(f"{len(hypotheses)} hypotheses for {len(references)} references; each needs its own")
    if not hypotheses:
        raise DataError("there is no translation to score: the list of hypotheses is empty")


def require_metrics() -> Any:
    """The module that computes the scores; told in one line, and before anything else is done, where it is missing."""
    try:
        return importlib.import_module("sacrebleu.metrics")
    except ImportError:
        raise UsageError("BLEU and chrF need sacrebleu, which is not installed; pip install 'regard[tasks]'") from None


def _metric(name: str) -> Any:
    metrics = require_metrics()
    # force: without it BLEU warns in several lines about worlds whose sentences end in a lone full stop.
    return metrics.BLEU(force=True) if name == "BLEU" else metrics.CHRF()


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
