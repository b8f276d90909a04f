"""Scores of sets of labels beside those of scikit-learn, and the threshold beside trying every one."""

from __future__ import annotations

import numpy as np
import pytest

from regard.errors import DataError
from regard.evaluation.multilabel import best_threshold, multilabel_report

NAMES = ("a", "b", "c", "d")


def sets(hits: np.ndarray) -> list[list[str]]:
    return [[name for name, hit in zip(NAMES, row, strict=True) if hit] for row in hits]


def test_scores_are_those_of_scikit_learn_and_those_of_each_example_make_them():
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(0)
    true, told = random.random((50, 4)) < 0.4, random.random((50, 4)) < 0.4
    found = multilabel_report(sets(true), sets(told), NAMES)
    assert found.scores["micro_f1"] == pytest.approx(metrics.f1_score(true, told, average="micro"))
    assert found.scores["macro_f1"] == pytest.approx(metrics.f1_score(true, told, average="macro"))
    assert found.scores["subset_accuracy"] == pytest.approx(metrics.accuracy_score(true, told))
    assert found.scores["hamming"] == pytest.approx(metrics.hamming_loss(true, told))
    assert found.each.score == pytest.approx(found.scores["micro_f1"])


def test_no_labels_at_all_and_labels_that_training_never_met_have_scores_too():
    nothing = multilabel_report([[], []], [[], []], NAMES).scores
    assert nothing == {"micro_f1": 0.0, "macro_f1": 0.0, "subset_accuracy": 1.0, "hamming": 0.0}
    missed = multilabel_report([["new"]], [["a"]], NAMES)
    assert missed.scores["hamming"] == pytest.approx(2 / 5)
    assert missed.labels["new"].support == 1
    with pytest.raises(DataError, match="empty"):
        multilabel_report([], [], NAMES)


def test_no_other_threshold_has_a_larger_f1():
    random = np.random.default_rng(1)
    hits = random.random((60, 4)) < 0.3
    chances = np.round(np.clip(0.3 * hits + random.random((60, 4)) * 0.6, 0, 1), 2)
    value, f1 = best_threshold(chances, hits)
    cuts = np.linspace(0, 1, 201)
    tried = [multilabel_report(sets(hits), sets(chances > cut), NAMES).scores["micro_f1"] for cut in cuts]
    assert f1 == pytest.approx(max(tried))
    assert multilabel_report(sets(hits), sets(chances > value), NAMES).scores["micro_f1"] == pytest.approx(f1)
