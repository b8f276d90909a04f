"""Scores of numbers beside those of scikit-learn and SciPy."""

from __future__ import annotations

import numpy as np
import pytest

from regard.errors import DataError
from regard.evaluation.regression import regression_scores


def test_scores_are_those_of_other_libraries_with_ties_too():
    metrics, stats = pytest.importorskip("sklearn.metrics"), pytest.importorskip("scipy.stats")
    random = np.random.default_rng(0)
    truth = random.integers(0, 9, 200) / 2
    told = truth + random.integers(-2, 3, 200)
    found = regression_scores(truth, told)
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(truth, told))
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, told))
    assert found["r2"] == pytest.approx(metrics.r2_score(truth, told))
    assert found["spearman"] == pytest.approx(stats.spearmanr(truth, told).statistic)


def test_numbers_that_are_all_the_same_give_plain_zeros():
    assert regression_scores([2.0, 2.0], [1.0, 3.0]) == {"mae": 1.0, "rmse": 1.0, "r2": 0.0, "spearman": 0.0}
    assert regression_scores([1.0, 3.0], [2.0, 2.0])["r2"] == 0.0


def test_nothing_to_score_and_numbers_that_do_not_pair_are_refused():
    with pytest.raises(DataError, match="empty"):
        regression_scores([], [])
    with pytest.raises(DataError, match="2 numbers are told for 1"):
        regression_scores([1.0], [1.0, 2.0])
