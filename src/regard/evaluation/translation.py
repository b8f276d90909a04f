"""Translations against references: BLEU, chrF and exact match.

    BLEU  brevity penalty times the geometric mean of the n-gram precisions, n = 1 .. 4   Papineni et al. 2002
    chrF  F2 of character n-grams, n = 1 .. 6                                             Popovic 2015

Both come from sacrebleu on cased, detokenised text, over the whole corpus and from 0 to 100. The signature says how
each was computed (Post 2018): two figures may be compared when their signatures are the same.
"""

from __future__ import annotations

import importlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.errors import DataError, UsageError

# Last source words of a bucket. An empty source has a bucket of its own, and what is longer shares the last one.
EDGES = (0, 10, 20, 30, 40, 50)


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
