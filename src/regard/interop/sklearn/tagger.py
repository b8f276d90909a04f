"""SequenceTagger: a tag for each word of a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from regard.interop.sklearn.calls import Columns, tags
from regard.interop.sklearn.estimator import BUDGET, RunEstimator
from regard.interop.sklearn.labels import names_of
from regard.interop.sklearn.refusal import BadData
from regard.interop.sklearn.texts import as_list, as_sentences


class SequenceTagger(RunEstimator):
    """A tagger: X is a list of lists of words, y a list of lists of tags.

    model  most_frequent, hmm or crf, which are fitted at once; tagger, or the name of an encoder.

    The other parameters are those of `SequenceClassifier`. After fit: `classes_`, the tags, and `run_`.
    """

    natural: ClassVar[str] = "tagger"

    def __init__(
        self,
        model: str = "tagger",
        *,
        size: str = "small",
        budget: str = BUDGET,
        random_state: Any = 0,
        device: str = "auto",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.size, self.budget = model, size, budget
        self.random_state, self.device, self.settings = random_state, device, settings

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from sentences and the tags of their words; a sentence without words teaches nothing."""
        both = [(words, tags) for words, tags in _pairs(X, y) if words]
        if not both:
            raise BadData("X has no words: every sentence is empty")
        classes, numbers = np.unique([tag for _, tags in both for tag in tags], return_inverse=True)
        if len(classes) < 2:
            raise BadData(f"y has one class, {classes.tolist()[0]!r}; a tagger needs two at least")
        borders = np.cumsum([len(words) for words, _ in both])[:-1]
        own = [part.tolist() for part in np.split(numbers, borders)]
        names = names_of(classes)
        named = [[names[number] for number in one] for one in own]
        learn, judge = self._dealt([" ".join(words) for words, _ in both], [set(one) for one in own])

        def columns(rows: np.ndarray) -> Columns:
            return {"words": [both[row][0] for row in rows], "tags": [named[row] for row in rows]}

        self._learn(columns(learn), None if judge is None else columns(judge), text="words", tag="tags")
        self.classes_ = classes
        return self

    def predict(self, X: Any) -> list[list[Any]]:
        """A tag for each word of each sentence."""
        check_is_fitted(self)
        values = dict(zip(names_of(self.classes_), self.classes_.tolist(), strict=True))
        return [[values[name] for name in told] for told in tags(self.run_, as_sentences(X))]

    def score(self, X: Any, y: Any) -> float:
        """The part of all words whose tag is right."""
        pairs = _pairs(X, y)
        told = chain.from_iterable(self.predict([words for words, _ in pairs]))
        truth = chain.from_iterable(tags for _, tags in pairs)
        right = [tag == guess for tag, guess in zip(truth, told, strict=True)]
        if not right:
            raise BadData("X has no words: there is nothing to score")
        return float(np.mean(right))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.string = False, True
        tags.target_tags.required = True
        return tags


def _pairs(X: Any, y: Any) -> list[tuple[list[str], list[Any]]]:
    """Sentences with the tags of their words."""
    sentences = as_sentences(X)
    if y is None:
        raise BadData(
            "this estimator requires y to be passed, but the target y is None; give the tags of each sentence"
        )
    rows = as_list(y, "y", "lists of tags")
    if len(rows) != len(sentences):
        raise BadData(f"found inconsistent numbers of samples: {len(sentences)} sentences in X and {len(rows)} in y")
    found = []
    for number, (words, row) in enumerate(zip(sentences, rows, strict=True)):
        tags = as_list(row, f"y[{number}]", "tags")
        if len(tags) != len(words):
            raise BadData(
                f"X[{number}] has {len(words)} words and y[{number}] {len(tags)} tags; give one for each word"
            )
        for place, tag in enumerate(tags):
            if tag is None or tag != tag:
                raise BadData(f"y[{number}][{place}] is missing ({tag}); give one for each word")
        found.append((words, tags))
    return found
