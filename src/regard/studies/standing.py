"""Who stands where: means and intervals over seeds, a ranking that admits ties, a sentence that the numbers bear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.table import human

# Two-sided 95% of Student's t by degrees of freedom.
STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
NORMAL = 1.96


@dataclass(frozen=True)
class Standing:
    """The score of a model: its mean, and the interval in which it lies in 19 of 20 cases. None where unknown."""

    label: str
    mean: float
    low: float | None
    high: float | None

    @property
    def known(self) -> bool:
        return self.low is not None and self.high is not None


def standing(label: str, scores: Sequence[float], parts: Sequence[float]) -> Standing:
    """From the scores of several seeds, or, with a single one, from those of parts of the test."""
    mean = sum(scores) / len(scores)
    sample = scores if len(scores) > 1 else parts
    if len(sample) < 2:
        return Standing(label, mean, None, None)
    half = half_width(sample)
    return Standing(label, mean, mean - half, mean + half)


def half_width(sample: Sequence[float]) -> float:
    """Half of the 95% interval of a mean.

    >>> round(half_width([1.0, 2.0, 3.0]), 3)
    2.484
    """
    n = len(sample)
    mean = sum(sample) / n
    deviation = math.sqrt(sum((value - mean) ** 2 for value in sample) / (n - 1))
    return (STUDENT[n - 2] if n - 2 < len(STUDENT) else NORMAL) * deviation / math.sqrt(n)


def ranked(standings: Sequence[Standing], lower_is_better: bool) -> list[Standing]:
    """Best first, by the mean."""
    return sorted(standings, key=lambda one: one.mean if lower_is_better else -one.mean)


def overlap(one: Standing, other: Standing) -> bool:
    """Whether noise alone could explain the difference; unknown intervals count as that."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return True
    return one.low <= other.high and other.low <= one.high


def sentence(order: Sequence[Standing], facts: dict[str, dict[str, Any]], budget: str, metric: str) -> str:
    """The finding in plain words. facts: what else was measured, by label."""
    if not order:
        return "No model finished."
    best, *others = order
    if not others:
        return f"{best.label} reached {metric} {best.mean:.4g} with a budget of {budget}; there was nothing to compare."
    ties = [one.label for one in others if overlap(best, one)]
    if len(ties) == len(others) and len(ties) > 1:
        told = f"No winner at {budget} a model: every other model is within noise of {best.label}"
    elif ties:
        told = f"No winner at {budget} a model: {best.label} leads with {metric} {best.mean:.4g}, but {_and(ties)} "
        told += "is within noise of it" if len(ties) == 1 else "are within noise of it"
    else:
        told = f"{best.label} is best at {budget} a model: {metric} {best.mean:.4g}, beyond noise of {others[0].label}"
        told += f" ({others[0].mean:.4g})"
    return f"{told}. {_extremes(facts)}".strip()


def _extremes(facts: dict[str, dict[str, Any]]) -> str:
    """Who is fastest to write with, and who carries the smallest state."""
    told = []
    speeds = {label: found["speed"] for label, found in facts.items() if found.get("speed")}
    if len(speeds) > 1:
        label = max(speeds, key=lambda name: speeds[name])
        told.append(f"{label} is the cheapest to use ({human(speeds[label])} {facts[label]['speed_unit']})")
    states = {label: found["state_bytes"] for label, found in facts.items() if found.get("state_bytes")}
    if len(states) > 1:
        label = min(states, key=lambda name: states[name])
        told.append(f"{label} carries the smallest state ({human(states[label], 'B')})")
    return f"{'; '.join(told)}." if told else ""


def first_to(curves: dict[str, Sequence[dict[str, float]]], level: float) -> tuple[str, float] | None:
    """The model that first brought the held-out loss to `level`, and when, in seconds."""
    times = {
        label: point["seconds"]
        for label, points in curves.items()
        for point in [next((one for one in points if one["valid_loss"] <= level), None)]
        if point is not None
    }
    return min(times.items(), key=lambda pair: pair[1]) if times else None


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
