"""SequenceClassifier: a class for a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from regard.interop.sklearn.calls import Columns, probabilities
from regard.interop.sklearn.estimator import BUDGET, RunEstimator
from regard.interop.sklearn.labels import as_labels, names_of
from regard.interop.sklearn.refusal import BadData
from regard.interop.sklearn.texts import as_texts


class SequenceClassifier(ClassifierMixin, RunEstimator):
    """A classifier of texts.

    model         majority, naive_bayes or linear, which are fitted at once; classifier, or the name of an encoder.
    size          tiny, small, base or paper.
    budget        of a model that learns by steps; one in minutes depends on the machine.
    random_state  the same number gives the same model.
    device        auto, cpu, cuda or mps.
    settings      of the model, its training and its data, as keywords of `regard.train`: {"order": 2}.

    After fit: `classes_`, `run_`.
    """

    natural: ClassVar[str] = "classifier"

    def __init__(
        self,
        model: str = "classifier",
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
        """Learn from texts and their labels. Of a network a tenth is held out, to choose its best weights.

        Its half that is solved for learns that tenth too when all is chosen (`train.refit`).
        """
        texts = as_texts(X)
        labels = as_labels(y, len(texts))
        classes, numbers = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise BadData(f"y has one class, {classes.tolist()[0]!r}; a classifier needs two at least")
        names, words = np.array(names_of(classes), object)[numbers], np.array(texts, object)
        learn, judge = self._dealt(texts, [{number} for number in numbers.tolist()])

        def columns(rows: np.ndarray) -> Columns:
            return {"text": words[rows].tolist(), "label": names[rows].tolist()}

        told: dict[str, Any] = {"text": "text", "label": "label", "missing": "empty"}
        if judge is not None and not np.isin(judge, learn).any():
            told["refit"] = True  # what is held out here is no file of somebody's, who would want it to stay unseen
        self._learn(columns(learn), None if judge is None else columns(judge), **told)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes_`, (n, C)."""
        check_is_fitted(self)
        return probabilities(self.run_, as_texts(X), names_of(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each text."""
        found = self.predict_proba(X)
        return self.classes_[found.argmax(1)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags
