"""Tags against the true ones: accuracy by token, accuracy on unseen words, and F1 of spans where tags are BIO.

A BIO tag is O, or B- or I- and a type. A span begins at B-X, and at an I-X that follows O, the start of the sentence
or another type; it goes on over the I-X after it (the rule of the CoNLL shared tasks, Tjong Kim Sang and De Meulder
2003). A predicted span is right when its type and both its ends are. F1 is over all spans of all sentences.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import DataError
from regard.evaluation.classification import ClassScores
from regard.evaluation.each import EachScore


@dataclass(frozen=True)
class TagSpan:
    """Words first .. stop - 1 of a sentence, which are one thing of a type."""

    type: str
    first: int
    stop: int


@dataclass(frozen=True)
class TaggingReport:
    """Quality of tags, in plain keys.

    unseen_*  of the words that are not in the training data, where these were given and there are any.
    span_*    where the tags are BIO; `spans` is how many there truly are.
    """

    accuracy: float
    tokens: int
    unseen_accuracy: float | None = None
    unseen_tokens: int | None = None
    span_precision: float | None = None
    span_recall: float | None = None
    span_f1: float | None = None
    spans: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without what was not measured."""
        return {key: value for key, value in vars(self).items() if value is not None}


def tagging_report(
    truth: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    words: Sequence[Sequence[str]] | None = None,
    seen: Collection[str] | None = None,
    *,
    bio: bool = False,
) -> TaggingReport:
    """The report on predicted tags of sentences; `words` of the same sentences and `seen` in training go together.

    bio  tags are known to mark spans, also where these sentences have none; else that is told from the tags.
    """
    _require_same_lengths(truth, predicted, "predicted tags")
    flat_truth, flat_guesses = _flat(truth), _flat(predicted)
    right = [tag == guess for tag, guess in zip(flat_truth, flat_guesses, strict=True)]
    if not right:
        raise DataError("there is no tag to score: the sentences are empty")
    unseen_accuracy, unseen_tokens = None, None
    if words is not None and seen is not None:
        _require_same_lengths(truth, words, "words")
        unseen = [hit for word, hit in zip(_flat(words), right, strict=True) if word not in seen]
        unseen_tokens = len(unseen)
        unseen_accuracy = sum(unseen) / len(unseen) if unseen else None
    accuracy = sum(right) / len(right)
    if not bio and not is_bio({*flat_truth, *flat_guesses}):
        return TaggingReport(accuracy, len(right), unseen_accuracy, unseen_tokens)
    scores = span_scores(truth, predicted)
    return TaggingReport(
        accuracy,
        len(right),
        unseen_accuracy,
        unseen_tokens,
        scores.precision,
        scores.recall,
        scores.f1,
        scores.support,
    )


def span_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> ClassScores:
    """Precision, recall and F1 of spans, and how many there truly are."""
    counts = _counted_spans(truth, predicted)
    return ClassScores.of(*(sum(one[place] for one in counts) for place in range(3)))


def spans_of_each(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> EachScore:
    """Of each sentence what the F1 of spans of all is made of: twice the right ones, and those there and told."""
    right, found, true = np.array(_counted_spans(truth, predicted), dtype=np.float64).T
    if not (found + true).any():
        return EachScore.mean_of(right)  # there is no span to tell, and none was told
    return EachScore(2 * right, found + true)


def tags_of_each(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> EachScore:
    """Of each sentence its right tags, and all of them."""
    _require_same_lengths(truth, predicted, "predicted tags")
    right = [sum(map(operator.eq, tags, guesses)) for tags, guesses in zip(truth, predicted, strict=True)]
    return EachScore(np.array(right, dtype=np.float64), np.array([len(tags) for tags in truth], dtype=np.float64))


def _counted_spans(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> list[tuple[int, int, int]]:
    """Of each sentence the spans that were told rightly, those told, and those there."""
    _require_same_lengths(truth, predicted, "predicted tags")
    pairs = [(set(spans(tags)), set(spans(guesses))) for tags, guesses in zip(truth, predicted, strict=True)]
    return [(len(true & found), len(found), len(true)) for true, found in pairs]


def spans(tags: Sequence[str]) -> list[TagSpan]:
    """The spans of a sentence, in order.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
    [TagSpan(type='PER', first=0, stop=2), TagSpan(type='LOC', first=3, stop=4)]
    """
    found: list[TagSpan] = []
    before = None
    for index, tag in enumerate(tags):
        kind, _, name = tag.partition("-")
        if kind == "I" and before == name:
            found[-1] = TagSpan(name, found[-1].first, index + 1)
        elif kind in ("B", "I"):
            found.append(TagSpan(name, index, index + 1))
        before = name if kind in ("B", "I") else None
    return found


def is_bio(tags: Iterable[str]) -> bool:
    """Whether a set of tags marks spans: each is O, or B- or I- and a type, and not all are O.

    >>> is_bio(["O", "B-PER", "I-PER"]), is_bio(["NOUN", "VERB"])
    (True, False)
    """
    kinds = set(tags) - {"O"}
    return bool(kinds) and all(kind[:2] in ("B-", "I-") and len(kind) > 2 for kind in kinds)


def _flat(sentences: Sequence[Sequence[str]]) -> list[str]:
    return [part for sentence in sentences for part in sentence]


def _require_same_lengths(truth: Sequence[Sequence[str]], others: Sequence[Sequence[str]], name: str) -> None:
    if len(truth) != len(others):
        raise DataError(f"{len(others)} sentences of {name} for {len(truth)} of true tags; each sentence needs both")
    for number, (tags, parts) in enumerate(zip(truth, others, strict=True), start=1):
        if len(tags) != len(parts):
            raise DataError(f"sentence {number} has {len(tags)} true tags and {len(parts)} {name}; give one for each")
