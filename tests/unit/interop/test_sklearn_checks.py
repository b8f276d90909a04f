"""The checks of scikit-learn for estimators.

They fit arrays of numbers, and of an estimator that declares to read something else scikit-learn leaves them all out
but one. So each estimator is given here a first step that turns rows of numbers into what it reads; everything after
it, from parameters to pickles, is then checked by the whole list.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import Tags
from sklearn.utils._testing import SkipTest
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

import regard
from regard.interop.sklearn import SequenceClassifier, SequenceTagger, SeriesForecaster, TextVectors

PAGE = (Path(__file__).parents[3] / "docs" / "sklearn.md").read_text(encoding="utf-8")
# Needs an environment variable that is read when scipy is imported.
SKIPPED = {"check_array_api_input"}


def words_of(row: np.ndarray) -> list[str]:
    """A word for each number: which column it is of, and about how large it is."""
    return [f"{'abcdefghij'[round(float(np.clip(2 * value + 5, 0, 9)))]}{place}" for place, value in enumerate(row)]


def texts_of(X: np.ndarray) -> list[str]:
    return [" ".join(words_of(row)) for row in X]


class OfNumbers(BaseEstimator):
    """What the estimators below have in common: they say that they read arrays of numbers, and look at these first."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        return tags

    def seen(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, reset=False)


class Classifier(OfNumbers, SequenceClassifier):
    def __init__(self, model="naive_bayes", random_state=0):
        super().__init__(model, random_state=random_state)

    def fit(self, X, y):
        return super().fit(texts_of(validate_data(self, X)), y)

    def predict_proba(self, X):
        return super().predict_proba(texts_of(self.seen(X)))


class Tagger(OfNumbers, SequenceTagger):
    def __init__(self, model="most_frequent", random_state=0):
        super().__init__(model, random_state=random_state)

    def fit(self, X, y):
        if y is not None:
            X, y = validate_data(self, X, y)
            y = [[label] * X.shape[1] for label in y.tolist()]
        return super().fit([words_of(row) for row in X], y)

    def predict(self, X):
        return np.array([tags[0] for tags in super().predict([words_of(row) for row in self.seen(X)])])

    def score(self, X, y):
        return float(np.mean(self.predict(X) == y))


class Vectors(OfNumbers, TextVectors):
    def __init__(self, run=None, random_state=0):
        super().__init__(run, random_state=random_state)

    def fit(self, X, y=None):
        return super().fit(texts_of(validate_data(self, X)))

    def transform(self, X):
        return super().transform(texts_of(self.seen(X)))


class Forecaster(OfNumbers, SeriesForecaster):
    """Every row is what may be known of the one step that comes next."""

    def __init__(self, model="lear", random_state=0):
        short = {"history": 2, "lags": [1], "known_lags": [], "season": 1, "penalty": "ridge", "strength": 0.01}
        super().__init__(model, horizon=1, random_state=random_state, settings=short)

    def fit(self, X, y=None):
        if y is None:
            raise ValueError("this estimator requires y to be passed, but the target y is None")
        return super().fit(*validate_data(self, X, y, y_numeric=True))

    def predict(self, X=None):
        return np.array([super(Forecaster, self).predict(row[None])[0] for row in self.seen(X)])


def name_of(check: Any) -> str:
    return check.func.__name__ if isinstance(check, partial) else check.__name__


def differs_in_arrays_alone(check: Any) -> bool:
    """Whether a check repeats another with arrays of another make, which the first step reads and not the estimator."""
    is_variant = isinstance(check, partial) and bool({"readonly_memmap", "X_dtype"} & check.keywords.keys())
    return is_variant or name_of(check).endswith("_data_not_an_array")


@pytest.fixture(scope="module")
def _undurable() -> Iterator[None]:
    """What is fitted here need not outlive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, _undurable: None) -> Path:
    """A language model to take vectors of."""
    folder = tmp_path_factory.mktemp("runs")
    lines = [" ".join(words_of(row)) for row in np.random.default_rng(0).normal(size=(100, 9))]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    regard.train("dan", folder / "text.txt", size="tiny", budget="1steps", out=folder / "run", quiet=True)
    return folder / "run"


@pytest.mark.parametrize("estimator", [Classifier, Tagger, Vectors, Forecaster])
@pytest.mark.filterwarnings("ignore")
def test_an_estimator_passes_every_check_of_scikit_learn(estimator: type[OfNumbers], run: Path):
    asked: Any = Vectors(str(run)) if estimator is Vectors else estimator()
    passed, skipped = set[str](), set[str]()
    for checked, check in estimator_checks_generator(asked):
        if differs_in_arrays_alone(check):
            continue
        try:
            check(checked)
            passed.add(name_of(check))
        except SkipTest:
            skipped.add(name_of(check))
    assert skipped == SKIPPED
    assert {"check_estimators_pickle", "check_fit_idempotent", "check_dict_unchanged"} <= passed
    told = re.search(rf"`{estimator.__mro__[2].__name__}` \| (\d+) \| 0 \| 1 \|", PAGE)
    assert told is not None
    if sklearn.__version__.startswith("1.9."):
        assert len(passed) == int(told[1])


@pytest.mark.parametrize("estimator", [SequenceClassifier(), SequenceTagger(), TextVectors(), SeriesForecaster()])
def test_scikit_learn_is_told_that_no_arrays_of_numbers_are_read(estimator: BaseEstimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        found = check_estimator(estimator)
    assert [(one["check_name"], one["status"]) for one in found] == [("check_estimator_cloneable", "passed")]
