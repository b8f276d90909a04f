"""Who stands where: means and intervals, a ranking that admits ties, a sentence that the numbers bear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.terminal.table import human

if TYPE_CHECKING:
    from regard.studies.verdict import Verdict

ROUNDING = 1e-12
NUMBERS = {1: "one", 2: "two"}


@dataclass(frozen=True)
class Standing:
    """The score of a model: its mean over trainings, and its 95% interval. None where there is none.

    The interval is of both chances, that of the test examples and that of training, as far as they can be told: of one
    training it is of the examples alone, and of a model that is fitted at once there is no other.
    """

    label: str
    mean: float
    low: float | None = None
    high: float | None = None
    seeds: int = 1
    fitted: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """Of the interval; the mean itself where there is none."""
        return (self.mean, self.mean) if self.low is None or self.high is None else (self.low, self.high)


def sentence(verdict: Verdict, facts: dict[str, dict[str, Any]], budget: str, metric: str, what: str) -> str:
    """The finding in plain words. facts: what else was measured, by label. what: the data, such as "text"."""
    if not verdict.order:
        return "No model finished."
    best, *others = verdict.order
    if not others:
        return f"{best.label} reached {metric} {best.mean:.4g} with a budget of {budget}; there was nothing to compare."
    told = _known(verdict, budget, metric) if _is_known(verdict) else _unknown(verdict, budget, metric, what)
    return f"{told}. {_extremes(facts)}".strip()


def _is_known(verdict: Verdict) -> bool:
    """Whether the chance of training is known of all."""
    return len(verdict.p) == len(verdict.order) - 1


def _known(verdict: Verdict, budget: str, metric: str) -> str:
    """Of models whose chances are known: the winner, or those that chance does not tell from the leader."""
    best, *others = verdict.order
    if verdict.winner is not None:
        beaten, p = f"{others[0].label} ({others[0].mean:.4g})", max(p for _, p in verdict.p)
        chance = "p below 0.001" if p < 0.001 else f"p {p:.2g} at most"
        return f"{best.label} is best at {budget} a model: {metric} {best.mean:.4g}, beyond noise of {beaten}, {chance}"
    ties, same = verdict.ties, level(verdict.order)
    if len(same) > 1:
        rest = [label for label in ties if label not in same]
        near = f", and {_and(rest)} {'is' if len(rest) == 1 else 'are'} within noise of them" if rest else ""
        return f"No winner at {budget} a model: {_and(same)} are level at {metric} {best.mean:.4g}{near}"
    if len(ties) == len(others) and len(ties) > 1:
        return f"No winner at {budget} a model: {_and(ties)} are all within noise of {best.label}"
    within = "is within noise of it" if len(ties) == 1 else "are within noise of it"
    leads = f"{best.label} leads with {metric} {best.mean:.4g}"
    return f"No winner at {budget} a model: {leads}, but {_and(ties)} {within}"


def _unknown(verdict: Verdict, budget: str, metric: str, what: str) -> str:
    """Where the chance of training is not known: the order of the numbers, and that it is no more than that."""
    best, *others = verdict.order
    seeds = min(one.seeds for one in verdict.order if not one.fitted) if any(not o.fitted for o in verdict.order) else 0
    same = level(verdict.order)
    ahead = f"{_and(same)} are level" if len(same) > 1 else f"{best.label} is ahead"
    then = "".join(f", then {one.label} with {one.mean:.4g}" for one in others[len(same) - 1 :][:1])
    told = f"at {budget} a model: {metric} {best.mean:.4g}{then}"
    if seeds == 0 or verdict.examples < 2:
        return f"{ahead} on this {what} {told}; from so few examples no difference is claimed"
    trainings = f"{NUMBERS.get(seeds, str(seeds))} training{'s' if seeds > 1 else ''} each"
    return f"{ahead} on this {what}, {trainings}, {told}; whether others would agree, --seeds 3 tells"


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


def ranks(order: Sequence[Standing]) -> list[int]:
    """The place of each, best first; those whose scores are the same share one."""
    found: list[int] = []
    for number, one in enumerate(order, 1):
        found.append(found[-1] if found and _is_level(one, order[number - 2]) else number)
    return found


def level(order: Sequence[Standing]) -> list[str]:
    """The first, and those whose scores are the same."""
    return [one.label for one, place in zip(order, ranks(order), strict=True) if place == 1]


def _is_level(one: Standing, other: Standing) -> bool:
    """Whether two scores differ by the rounding of a mean alone."""
    return math.isclose(one.mean, other.mean, rel_tol=ROUNDING, abs_tol=ROUNDING)


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
