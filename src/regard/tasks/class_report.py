"""The scores of chances of classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from regard.evaluation.calibration import calibration_error, reliability
from regard.evaluation.classification import classification_report
from regard.evaluation.each import EachScore
from regard.tasks.verbs import Report

RELIABILITY = "reliability"  # the table of how often answers of each confidence are right
LEAST = 1e-30  # of a chance, in a loss


def class_report(classes: Sequence[str], labels: np.ndarray, chances: Iterable[np.ndarray]) -> Report:
    """The scores of the chances of every class, (C,) for each example, whose true classes are `labels` (n,)."""
    told, sure, own = list[int](), list[float](), list[float]()
    for label, one in zip(labels.tolist(), chances, strict=True):
        best = int(one.argmax())
        told.append(best)
        sure.append(float(one[best]))
        own.append(float(one[label]))
    truth: list[int] = labels.tolist()
    found = classification_report([classes[one] for one in truth], [classes[one] for one in told])
    right = labels == np.array(told)
    bins = reliability(sure, right)
    scores = {
        "accuracy": found.accuracy,
        "macro_f1": found.macro_f1,
        "balanced_accuracy": found.balanced_accuracy,
        "calibration_error": calibration_error(bins),
        "examples": found.examples,
        "loss": float(-np.log(np.maximum(own, LEAST)).mean()),
    }
    by_class = [{"class": name, **vars(one)} for name, one in found.classes.items()]
    tables = {"by_class": by_class, RELIABILITY: [one.to_row() for one in bins]}
    return Report(scores, tables, each=lambda: EachScore.mean_of(right))
