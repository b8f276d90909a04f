"""Scaling: the loss of a model at several sizes, and the power law through them.

    L(N) = a N^-b                    a line in logarithms; b by least squares, with a 95% interval

Glossary
N  parameters, or operations spent        L  test loss        b  how fast the loss falls with size
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from regard.evaluation.student import t_quantile

SCALES = (0.25, 0.5, 1.0, 2.0)
AT = "@"


@dataclass(frozen=True)
class PowerLaw:
    """a N^-b through some points. low, high: ends of the interval of b; None with fewer than three points."""

    a: float
    b: float
    low: float | None
    high: float | None
    r2: float

    def at(self, n: float) -> float:
        return self.a * n**-self.b


def power_law(points: Sequence[tuple[float, float]]) -> PowerLaw | None:
    """The law through (N, L), by least squares on logarithms; None where there are no two different sizes.

    >>> law = power_law([(1.0, 8.0), (10.0, 4.0), (100.0, 2.0)])
    >>> round(law.b, 4), round(law.at(1000.0), 4), round(law.r2, 4)
    (0.301, 1.0, 1.0)
    """
    logs = [(math.log(n), math.log(loss)) for n, loss in points if n > 0 and loss > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    count = len(logs)
    mean_x, mean_y = sum(x for x, _ in logs) / count, sum(y for _, y in logs) / count
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in logs)
    total = sum((y - mean_y) ** 2 for _, y in logs)
    r2 = 1 - rest / total if total else 1.0
    a = math.exp(mean_y - slope * mean_x)
    if count < 3:
        return PowerLaw(a, -slope, None, None, r2)
    half = t_quantile(count - 2) * math.sqrt(rest / (count - 2) / spread)
    return PowerLaw(a, -slope, -slope - half, -slope + half, r2)


def families(labels: Sequence[str]) -> dict[str, list[str]]:
    """Labels of one model at several sizes, by the model's name.

    >>> families(["ngram", "lstm@0.5", "lstm@1"])
    {'lstm': ['lstm@0.5', 'lstm@1']}
    """
    found: dict[str, list[str]] = {}
    for label in labels:
        name, at, _ = label.rpartition(AT)
        if at:
            found.setdefault(name, []).append(label)
    return found


def winners(scores: dict[str, float], lower_is_better: bool) -> list[tuple[str, str]]:
    """(size, model) that is best at each size.

    >>> winners({"a@0.5": 2.0, "b@0.5": 1.0, "a@1": 0.5, "b@1": 0.9}, True)
    [('0.5', 'b'), ('1', 'a')]
    """
    at: dict[str, dict[str, float]] = {}
    for label, score in scores.items():
        name, mark, size = label.rpartition(AT)
        if mark:
            at.setdefault(size, {})[name] = score
    sign = 1 if lower_is_better else -1
    return [(size, min(group, key=lambda name: sign * group[name])) for size, group in at.items()]
