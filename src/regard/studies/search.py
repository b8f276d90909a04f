"""The search for a learning rate: short trainings outward from the model's own, until both neighbours are worse.

    own rate, 3 times it, 9 times it ... as long as that is better; then a third, a ninth ... likewise

A training that is behind the best one half-way is ended there, and what it did not spend is left for another.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from regard.errors import NumericError
from regard.training.display import Display, Evaluation, Passing, Start
from regard.training.metrics import evaluations

RATE_STEP = 3.0
FEWEST = 3  # rates without which there is nothing to choose
HALF_WAY = 0.5  # of the evaluations of the best one, after which a training may be told to be behind
BEHIND = 0.03  # how much worse that is


class Searched:
    """The rates that were tried, by their distance from the model's own in steps, and the held-out loss of each."""

    def __init__(self, own: float) -> None:
        self.own = own
        self.losses: dict[int, float | None] = {}

    def rate(self, step: int) -> float:
        return float(f"{self.own * RATE_STEP**step:.2g}")

    @property
    def best(self) -> int | None:
        """The step with the lowest loss, of equal ones the nearest to the model's own; None where all diverged."""
        known = {step: loss for step, loss in self.losses.items() if loss is not None}
        return min(known, key=lambda step: (known[step], abs(step))) if known else None

    @property
    def next(self) -> int | None:
        """The step to try: that beside the best one; None where both are known to be worse."""
        best = self.best
        if best is None:
            return min(self.losses) - 1 if self.losses else 0
        return next((step for step in (best + 1, best - 1) if step not in self.losses), None)

    @property
    def rates(self) -> list[tuple[float, float | None]]:
        return [(self.rate(step), self.losses[step]) for step in sorted(self.losses)]


class Behind(NumericError):
    """A training that was ended because another one was clearly better by then."""

    def __init__(self, evaluation: Evaluation, seconds: float) -> None:
        super().__init__(f"step {evaluation.step}: a held-out loss of {evaluation.loss:.4g} is behind the best rate's")
        self.evaluation, self.seconds = evaluation, seconds


class Watched(Passing):
    """Ends its training where it is behind. best: the held-out losses of the best one so far."""

    def __init__(self, inner: Display, best: Sequence[float]) -> None:
        super().__init__(inner)
        self.best = best
        self.count, self.began = 0, time.monotonic()

    def start(self, start: Start) -> None:
        self.began = time.monotonic()
        # One that goes on has been evaluated before.
        self.count = sum(point["step"] <= start.step for point in evaluations(start.folder)) if start.step else 0
        super().start(start)

    def evaluated(self, evaluation: Evaluation) -> None:
        super().evaluated(evaluation)
        self.count += 1
        # The last one ends the training anyway.
        if not HALF_WAY * len(self.best) <= self.count < len(self.best):
            return
        best = self.best[self.count - 1]
        if evaluation.loss > best + BEHIND * abs(best):
            raise Behind(evaluation, time.monotonic() - self.began)
