"""Who stands where: means and intervals, a ranking that admits ties, a sentence that the numbers bear.

Two kinds of chance are told apart. Over seeds: what another training would have come to. Over parts of the test: what
another text would have come to, of this one training. They are not set against each other, and from one training of
each model no difference is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from regard.evaluation.student import half_width
from regard.terminal.table import human

Over = Literal["seeds", "test parts"]
SEEDS: Over = "seeds"
PARTS: Over = "test parts"


@dataclass(frozen=True)
class Standing:
    """The score of a model: its mean, and its 95% interval by Student's t. None where there is none.

    over   what the interval was taken over, and so which chance it tells of.
    count  of how many seeds or parts.
    """

    label: str
    mean: float
    low: float | None = None
    high: float | None = None
    over: Over | None = None
    count: int = 1

    @property
    def ends(self) -> tuple[float, float]:
        """Of the interval; the mean itself where there is none."""
        return (self.mean, self.mean) if self.low is None or self.high is None else (self.low, self.high)


def standing(label: str, scores: Sequence[float], parts: Sequence[float]) -> Standing:
    """From the scores of several seeds, or, with a single one, from those of parts of the test."""
    mean = sum(scores) / len(scores)
    sample, over = (scores, SEEDS) if len(scores) > 1 else (parts, PARTS)
    if len(sample) < 2:
        return Standing(label, mean)
    half = half_width(sample)
    return Standing(label, mean, mean - half, mean + half, over, len(sample))


def ranked(standings: Sequence[Standing], lower_is_better: bool) -> list[Standing]:
    """Best first, by the mean."""
    return sorted(standings, key=lambda one: one.mean if lower_is_better else -one.mean)


def comparable(one: Standing, other: Standing) -> bool:
    """Whether the chance of training is known of both."""
    return one.over == SEEDS and other.over == SEEDS


def differ(one: Standing, other: Standing) -> bool:
    """Whether the chance of training does not explain the difference; what is not known is no difference."""
    (low, high), (other_low, other_high) = one.ends, other.ends
    return comparable(one, other) and (high < other_low or other_high < low)


def sentence(order: Sequence[Standing], facts: dict[str, dict[str, Any]], budget: str, metric: str) -> str:
    """The finding in plain words. facts: what else was measured, by label."""
    if not order:
        return "No model finished."
    best, *others = order
    if not others:
        return f"{best.label} reached {metric} {best.mean:.4g} with a budget of {budget}; there was nothing to compare."
    known = [one for one in others if comparable(best, one)]
    among = f" of the {len(known) + 1} with several seeds" if known and len(known) < len(others) else ""
    told = _known(best, known, among, budget, metric) if known else _unknown(best, others, budget, metric)
    apart = [f"{one.label} ({one.mean:.4g})" for one in others if known and one not in known]
    if apart:
        told += f". {_and(apart)} {'was' if len(apart) == 1 else 'were'} trained once and not compared with the others"
    return f"{told}. {_extremes(facts)}".strip()


def _known(best: Standing, known: Sequence[Standing], among: str, budget: str, metric: str) -> str:
    """Of models with several seeds: the winner, or those that chance does not tell from it. among: if not of all."""
    ties = [one.label for one in known if not differ(best, one)]
    if len(ties) == len(known) and len(ties) > 1:
        return f"No winner at {budget} a model: {_and(ties)} are all within noise of {best.label}"
    if ties:
        within = "is within noise of it" if len(ties) == 1 else "are within noise of it"
        leads = f"{best.label} leads with {metric} {best.mean:.4g}"
        return f"No winner at {budget} a model: {leads}, but {_and(ties)} {within}"
    beaten = f"{known[0].label} ({known[0].mean:.4g})"
    return f"{best.label} is best{among} at {budget} a model: {metric} {best.mean:.4g}, beyond noise of {beaten}"


def _unknown(best: Standing, others: Sequence[Standing], budget: str, metric: str) -> str:
    """Where the chance of training is not known: the order of the numbers, and that it is no more than that."""
    told = f"at {budget} a model: {metric} {best.mean:.4g}, then {others[0].label} with {others[0].mean:.4g}"
    if any(one.over == SEEDS for one in (best, *others)):
        return f"{best.label} is ahead {told}; of one training against several no difference is claimed"
    return f"{best.label} is ahead in one training each {told}; whether another training would agree, --seeds 3 tells"


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
