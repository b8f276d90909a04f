"""Sets of labels against the true ones.

    micro F1          2 right / (told + true), over all labels of all examples
    macro F1          mean of F1 over the labels that are told or true somewhere
    subset accuracy   examples whose labels are all told and nothing else
    hamming           part of all (example, label) pairs that is wrong

A ratio over nothing is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import DataError
from regard.evaluation.classification import ClassScores
from regard.evaluation.each import EachScore


@dataclass(frozen=True)
class MultilabelReport:
    """scores: in plain keys. labels: of each. each: of every example twice its right labels, of told and true ones."""

    scores: dict[str, float]
    labels: dict[str, ClassScores]
    each: EachScore


def multilabel_report(
    truth: Sequence[Collection[str]], told: Sequence[Collection[str]], names: Collection[str]
) -> MultilabelReport:
    """The report on sets of labels. names: those that may be told."""
    if len(truth) != len(told):
        raise DataError(f"{len(told)} sets of labels are told for {len(truth)} true ones; each example needs one")
    if not truth:
        raise DataError("there is nothing to score: the list of examples is empty")
    pairs = [(set(true), set(said)) for true, said in zip(truth, told, strict=True)]
    right = Counter(name for true, said in pairs for name in true & said)
    true_of, said_of = (Counter(name for pair in pairs for name in pair[side]) for side in (0, 1))
    labels = {
        name: ClassScores.of(right[name], said_of[name], true_of[name])
        for name in sorted(true_of.keys() | said_of.keys())
    }
    both, wrong = true_of.total() + said_of.total(), sum(len(true ^ said) for true, said in pairs)
    n_labels = max(1, len(set(names) | labels.keys()))
    scores = {
        "micro_f1": 2 * right.total() / both if both else 0.0,
        "macro_f1": sum(one.f1 for one in labels.values()) / len(labels) if labels else 0.0,
        "subset_accuracy": sum(true == said for true, said in pairs) / len(pairs),
        "hamming": wrong / (len(pairs) * n_labels),
    }
    hits = np.array([2.0 * len(true & said) for true, said in pairs])
    return MultilabelReport(scores, labels, EachScore(hits, np.array([float(len(t) + len(s)) for t, s in pairs])))


def best_threshold(chances: np.ndarray, hits: np.ndarray) -> tuple[float, float]:
    """The threshold of chances (n, L) above which telling a label gives the largest micro F1, and that F1.

    It lies midway between two chances; of equal ones the one nearest to a half is taken.
    """
    flat, wanted = chances.ravel(), hits.ravel().astype(bool)
    order = np.argsort(-flat, kind="stable")
    sorted_chances, true = flat[order], int(wanted.sum())
    right = np.cumsum(wanted[order])
    f1 = 2 * right / (np.arange(1, len(flat) + 1) + max(1, true))
    ends = np.append(sorted_chances[1:], 0.0)
    places = np.flatnonzero(sorted_chances > ends)  # a cut between two equal chances is none
    if not len(places):
        return 0.5, 0.0
    cuts, scores = (sorted_chances[places] + ends[places]) / 2, f1[places]
    best = scores.max()
    near = cuts[scores >= best - 1e-12]
    return float(near[np.abs(near - 0.5).argmin()]), float(best)
