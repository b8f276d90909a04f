"""Verdict: what may be said of several models by their scores on the same examples, each trained a few times.

Two chances are at work together: another test would have had other examples, and another training other weights.

    d    score of a less score of b, each the mean over its trainings, on the same examples
    se   of d, by a bootstrap: examples are drawn anew for all models alike, trainings for each model on its own
    p    of d / se by Student's t, with the degrees of freedom of Satterthwaite (1946), and no smaller than by the signs
         of the differences: of two examples that come out alike the variance is 0, and they are no proof of anything

A bootstrap of n draws deviations that are too small by sqrt((n - 1) / n), which matters for three trainings: they are
made larger by as much. What a training does to one example and not to others is in the draws of both, and is taken
away once (Owen 2007). The leader is the winner where every p against it stays below 5% after Holm's correction (1979)
for as many comparisons as there are other models. Which models are told apart from a leader that is no winner is
corrected for all pairs, as the leader was chosen by the same numbers.

The interval of a score is by Student's t too, and of a share of rights by Wilson's formula (`evaluation/share.py`). A
score of another kind that is the same on every example has none: that it has no error is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from regard.evaluation.each import EachScore
from regard.evaluation.share import effective_count, share_interval
from regard.evaluation.signs import by_signs
from regard.evaluation.student import outside, t_quantile
from regard.studies.standing import Standing

DRAWS = 1000
SEED = 0
LEVEL = 0.05
AT_ONCE = 1 << 22  # numbers that are summed together
FEWEST_SEEDS = 3
ROUNDING = 1e-12


@dataclass(frozen=True)
class Contestant:
    """A model by the scores of its trainings, each on the same examples. fitted: a training has no chance in it."""

    label: str
    trainings: Sequence[EachScore]
    fitted: bool = False


@dataclass(frozen=True)
class Verdict:
    """The ranking, best first, and what it bears.

    examples  that each was scored on.
    p         of the leader against each other model that it can be compared with, corrected by Holm.
    ties      those of them that cannot be told from the leader.
    winner    the leader, where it is beyond chance of all others.
    """

    order: tuple[Standing, ...] = ()
    examples: int = 0
    p: tuple[tuple[str, float], ...] = ()
    ties: tuple[str, ...] = ()
    winner: str | None = None


def judged(contestants: Sequence[Contestant], lower_is_better: bool) -> Verdict:
    """What the scores say."""
    if not contestants:
        return Verdict()
    drawn = _drawn(contestants)
    sign = 1 if lower_is_better else -1
    spreads = [_Spread.of(one, *drawn[one.label], is_error=lower_is_better) for one in contestants]
    spreads.sort(key=lambda one: sign * one.mean)
    order = tuple(one.standing() for one in spreads)
    known = [one for one in spreads if one.is_known]
    if len(spreads) < 2 or spreads[0] not in known:
        return Verdict(order, spreads[0].examples)
    pairs = [(one.label, other.label, _chance(one, other)) for i, one in enumerate(known) for other in known[i + 1 :]]
    leading = [(other, p) for leader, other, p in pairs if leader == known[0].label]
    corrected = tuple(zip([name for name, _ in leading], holm([p for _, p in leading]), strict=True))
    of_all = holm([p for _, _, p in pairs])
    ties = tuple(
        other for (leader, other, _), p in zip(pairs, of_all, strict=True) if leader == known[0].label and p >= LEVEL
    )
    wins = len(known) == len(spreads) and all(p < LEVEL for _, p in corrected)
    return Verdict(order, spreads[0].examples, corrected, () if wins else ties, known[0].label if wins else None)


def holm(chances: Sequence[float]) -> list[float]:
    """The p of each test, corrected so that all together are wrong as rarely as one.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    found, highest = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda number: chances[number])):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[place]))
        found[place] = highest
    return found


@dataclass(frozen=True, eq=False)
class _Spread:
    """A model's mean, and how it comes out in draws of other examples and of other trainings.

    twice    the part of their variances that is in both.
    each     the mean of its trainings on every example, (n,), of which its score is the mean.
    answers  of a share of rights, how many single ones it is of.
    """

    label: str
    mean: float
    by_examples: np.ndarray
    by_seeds: np.ndarray
    twice: float
    examples: int
    seeds: int
    fitted: bool
    each: np.ndarray
    answers: float | None

    @classmethod
    def of(cls, one: Contestant, by_examples: np.ndarray, by_seeds: np.ndarray, is_error: bool) -> _Spread:
        mean = float(np.mean([each.score for each in one.trainings]))
        counts = len(one.trainings[0]), len(one.trainings)
        each = np.mean([each.values / each.weights.mean() for each in one.trainings], axis=0)
        twice, answers = _twice(one.trainings), None if is_error else _answers(one.trainings)
        return cls(one.label, mean, by_examples, by_seeds, twice, *counts, one.fitted, each, answers)

    @property
    def is_known(self) -> bool:
        """Whether both chances can be told."""
        return self.examples > 1 and (self.fitted or self.seeds >= FEWEST_SEEDS)

    def standing(self) -> Standing:
        """With the interval of both chances, as far as they can be told."""
        if self.examples < 2:
            return Standing(self.label, self.mean, seeds=self.seeds, fitted=self.fitted)
        error, degrees = _error([(self.by_examples, self.examples), (self.by_seeds, self.seeds)], self.twice)
        if self.answers is not None:
            count = effective_count(self.mean, error, degrees, self.examples, self.answers)
            return Standing(self.label, self.mean, *share_interval(self.mean, count), self.seeds, self.fitted)
        if error == 0:
            return Standing(self.label, self.mean, seeds=self.seeds, fitted=self.fitted)
        half = error * t_quantile(degrees)
        return Standing(self.label, self.mean, self.mean - half, self.mean + half, self.seeds, self.fitted)


def _chance(one: _Spread, other: _Spread) -> float:
    """p of the difference of two models; of none it is 1."""
    parts = [(one.by_examples - other.by_examples, one.examples)]
    parts += [(each.by_seeds, each.seeds) for each in (one, other)]
    error, degrees = _error(parts, one.twice + other.twice)
    least = by_signs(one.each - other.each)
    return least if error == 0 else max(least, outside(abs(one.mean - other.mean) / error, degrees))


def _answers(trainings: Sequence[EachScore]) -> float | None:
    """Of counts of rights among so many each, how many there are; None of a score of another kind."""
    for each in trainings:
        whole = (each.values == np.round(each.values)).all() and (each.weights == np.round(each.weights)).all()
        if not (whole and (each.values >= 0).all() and (each.values <= each.weights).all()):
            return None
    return float(np.mean([each.weights.sum() for each in trainings]))


def _twice(trainings: Sequence[EachScore]) -> float:
    """The variance of a mean that comes from what each training does to each example alone."""
    seeds, count = len(trainings), len(trainings[0])
    if min(seeds, count) < 2:
        return 0.0
    # Deviations of examples from the score of their training, each as much as it weighs in it.
    apart = np.stack([(each.values - each.score * each.weights) / each.weights.mean() for each in trainings])
    rest = apart - apart.mean(0)
    return float(np.square(rest).sum() / ((seeds - 1) * (count - 1)) / (seeds * count))


def _error(parts: Sequence[tuple[np.ndarray, int]], twice: float) -> tuple[float, float]:
    """The standard error of a sum of independent deviations, each known from so many, and its degrees of freedom."""
    variances = [(_variance(drawn), count - 1) for drawn, count in parts if count > 1]
    counted, largest = sum(variance for variance, _ in variances), max((v for v, _ in variances), default=0.0)
    total = max(counted - twice, largest)
    below = sum(variance**2 / degrees for variance, degrees in variances)
    return math.sqrt(total), max(1.0, total**2 / below) if below > 0 else 1.0


def _variance(drawn: np.ndarray) -> float:
    """Of draws; none where they differ by the rounding of a sum alone, as those of a perfect score do."""
    found = float(np.var(drawn))
    return found if found > (ROUNDING * float(np.abs(drawn).max())) ** 2 else 0.0


def _drawn(contestants: Sequence[Contestant]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each model in every draw: its score on other examples, and that of other trainings, (DRAWS,) each."""
    chance = np.random.default_rng(SEED)
    count = len(contestants[0].trainings[0])
    times, found = _times(count), {}
    for one in contestants:
        values, weights = (np.stack([getattr(each, name) for each in one.trainings]) for name in ("values", "weights"))
        scores = _sums(times, values) / np.maximum(_sums(times, weights), 1e-300)  # (DRAWS, S)
        seeds = len(one.trainings)
        trained = np.array([each.score for each in one.trainings])
        again = trained[chance.integers(seeds, size=(DRAWS, seeds))].mean(1)
        found[one.label] = (scores.mean(1) * _widened(count), again * _widened(seeds))
    return found


def _widened(count: int) -> float:
    """By how much deviations drawn from so many are too small."""
    return math.sqrt(count / (count - 1)) if count > 1 else 1.0


@lru_cache(maxsize=1)
def _times(count: int) -> np.ndarray:
    """How often each example is drawn, (DRAWS, count); more often than 255 times happens in no draw of any length."""
    chance, found = np.random.default_rng(SEED), np.empty((DRAWS, count), np.uint8)
    for row in found:
        row[:] = np.bincount(chance.integers(count, size=count), minlength=count)
    return found


def _sums(times: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Of each training (S, n) the sum over the examples of each draw, (DRAWS, S); of many examples a part at a time."""
    step = max(1, AT_ONCE // times.shape[1])
    return np.concatenate([times[first : first + step] @ numbers.T for first in range(0, len(times), step)])
