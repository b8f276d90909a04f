from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DataError
from regard.evaluation.classification import ClassScores, classification_report

LABELS = st.sampled_from(["a", "b", "c", "d"])
PAIRS = st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=40)


def test_a_table_worked_by_hand() -> None:
    truth = ["cat"] * 5 + ["dog"] * 3 + ["cow"] * 2
    guesses = ["cat", "cat", "cat", "dog", "cow", "dog", "dog", "cat", "dog", "dog"]
    report = classification_report(truth, guesses)
    assert report.accuracy == 0.5
    assert report.classes == {
        "cat": ClassScores(3 / 4, 3 / 5, 6 / 9, 5),
        "cow": ClassScores(0.0, 0.0, 0.0, 2),
        "dog": ClassScores(2 / 5, 2 / 3, 4 / 8, 3),
    }
    assert report.macro_f1 == pytest.approx((2 / 3 + 0 + 1 / 2) / 3)
    assert report.balanced_accuracy == pytest.approx((3 / 5 + 2 / 3 + 0) / 3)
    assert report.confusion == {
        "cat": {"cat": 3, "cow": 1, "dog": 1},
        "cow": {"dog": 2},
        "dog": {"cat": 1, "dog": 2},
    }


def test_a_class_that_was_only_predicted_counts_and_one_of_neither_does_not() -> None:
    report = classification_report(["a", "a"], ["a", "z"])
    assert set(report.classes) == {"a", "z"}
    assert report.classes["z"] == ClassScores(0.0, 0.0, 0.0, 0)
    assert report.macro_f1 == pytest.approx((2 / 3 + 0) / 2)
    assert report.balanced_accuracy == 0.5  # of true classes alone
    assert report.confusion == {"a": {"a": 1, "z": 1}}


@given(PAIRS)
def test_every_number_follows_from_counting_pairs(pairs: list[tuple[str, str]]) -> None:
    truth, guesses = [left for left, _ in pairs], [right for _, right in pairs]
    report = classification_report(truth, guesses)
    assert report.accuracy == pytest.approx(sum(left == right for left, right in pairs) / len(pairs))
    f1 = []
    for label in set(truth) | set(guesses):
        right = sum(pair == (label, label) for pair in pairs)
        wrong = sum(guess == label != true for true, guess in pairs)
        missed = sum(true == label != guess for true, guess in pairs)
        scores = report.classes[label]
        assert scores.support == right + missed
        assert scores.precision == pytest.approx(right / (right + wrong) if right + wrong else 0)
        assert scores.recall == pytest.approx(right / (right + missed) if right + missed else 0)
        p, r = scores.precision, scores.recall
        f1.append(2 * p * r / (p + r) if p + r else 0)
        assert scores.f1 == pytest.approx(f1[-1])
    assert report.macro_f1 == pytest.approx(sum(f1) / len(f1))
    assert sum(count for row in report.confusion.values() for count in row.values()) == len(pairs) == report.examples


def test_the_report_is_plain_json() -> None:
    report = classification_report(["yes", "no"], ["yes", "yes"]).to_dict()
    assert json.loads(json.dumps(report)) == report
    assert list(report) == ["accuracy", "macro_f1", "balanced_accuracy", "examples", "classes", "confusion"]
    assert report["classes"]["yes"] == {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "support": 1}


def test_lists_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(DataError, match="1 predicted labels for 2 true ones"):
        classification_report(["a", "b"], ["a"])
    with pytest.raises(DataError, match="no label to score"):
        classification_report([], [])
