"""Labels against the true ones: accuracy, F1 of each class and their mean.

    precision = right / predicted      recall = right / true      F1 = 2 right / (predicted + true)
    macro-F1  = mean of F1 over the classes      balanced accuracy = mean of recall over the true ones

A class counts when it is among the true labels or among the predicted ones; a ratio over nothing is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.errors import DataError


@dataclass(frozen=True)
class ClassScores:
    """One class. `support` is how often it is the true one."""

    precision: float
    recall: float
    f1: float
    support: int

    @classmethod
    def of(cls, right: int, predicted: int, true: int) -> ClassScores:
        """
        >>> ClassScores.of(right=2, predicted=4, true=2)
        ClassScores(precision=0.5, recall=1.0, f1=0.6666666666666666, support=2)
        """
        return cls(_ratio(right, predicted), _ratio(right, true), _ratio(2 * right, predicted + true), true)


@dataclass(frozen=True)
class ClassificationReport:
    """Quality of labels, in plain keys.

    classes    the scores of each class, by its label.
    confusion  how often a true label was given each predicted one: confusion[true][predicted], zeros left out.
    """

    accuracy: float
    macro_f1: float
    balanced_accuracy: float
    examples: int
    classes: dict[str, ClassScores]
    confusion: dict[str, dict[str, int]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def classification_report(truth: Sequence[str], predicted: Sequence[str]) -> ClassificationReport:
    """The report on predicted labels, one for each true one."""
    if len(truth) != len(predicted):
        raise DataError(f"{len(predicted)} predicted labels for {len(truth)} true ones; each example needs one")
    if not truth:
        raise DataError("there is no label to score: the list of examples is empty")
    pairs = Counter(zip(truth, predicted, strict=True))
    true, found = Counter(truth), Counter(predicted)
    labels = sorted(true | found)
    classes = {label: ClassScores.of(pairs[label, label], found[label], true[label]) for label in labels}
    confusion: dict[str, dict[str, int]] = {label: {} for label in sorted(true)}
    for (left, right), count in sorted(pairs.items()):
        confusion[left][right] = count
    return ClassificationReport(
        accuracy=sum(pairs[label, label] for label in labels) / len(truth),
        macro_f1=sum(scores.f1 for scores in classes.values()) / len(classes),
        balanced_accuracy=sum(classes[label].recall for label in true) / len(true),
        examples=len(truth),
        classes=classes,
        confusion=confusion,
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
