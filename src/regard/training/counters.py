"""Counters: where a run stands, in plain numbers that go to and come back from a checkpoint."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.config import decode
from regard.errors import UsageError, blamed_on
from regard.training import checkpoint

NOT_NEGATIVE = frozenset(
    {
        "step",
        "tokens",
        "seconds",
        "since_best",
        "evaluations",
        "marks",
        "places",
        "padding",
        "plan_count",
        "plan_tokens",
    }
)
LARGEST_COUNTER = 1e300


@dataclass
class Counters:
    """Where a run stands: plain numbers, all of them in state.json.

    seconds          time spent in the loop, over all resumes
    best_*           held-out loss and, where the task has one, score of the best weights so far, and their step
    since_best       evaluations since then
    evaluated_step   step of the last evaluation, and its loss
    marks            how many of the plan's evaluations are behind
    places, padding  for tokens in the batches read so far, and how many of them held padding
    plan_*           how many evaluations a run has and how many held-out tokens each reads; None until it is made
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_loss: float | None = None
    best_score: float | None = None
    best_step: int | None = None
    since_best: int = 0
    evaluations: int = 0
    evaluated_step: int | None = None
    evaluated_loss: float | None = None
    marks: int = 0
    places: int = 0
    padding: int = 0
    plan_count: int | None = None
    plan_tokens: int | None = None

    @property
    def padding_share(self) -> float:
        """The part of the batches read so far that was padding."""
        return self.padding / max(1, self.places)

    def forget_best(self) -> None:
        """Choose the best weights anew, from those of the present step on."""
        self.best_loss = self.best_score = self.best_step = self.evaluated_step = None
        self.since_best = 0


def counters_of(state: Mapping[str, Any], path: Path) -> Counters:
    """The counters that the state of a checkpoint holds, each of its type and range."""
    hints = typing.get_type_hints(Counters)
    with blamed_on(path / checkpoint.STATE):
        told = state.get("counters")
        if not isinstance(told, dict) or not told.keys() <= hints.keys():
            raise UsageError("counters: not those of a run")
        found = Counters(**{key: decode(value, hints[key], f"counters.{key}") for key, value in told.items()})
        for key, value in vars(found).items():
            if value is not None and ((key in NOT_NEGATIVE and value < 0) or abs(value) > LARGEST_COUNTER):
                raise UsageError(f"counters.{key}: {value} is no count")
        if found.step != int(path.name):
            raise UsageError(f"counters.step: {found.step}, in the checkpoint of step {int(path.name)}")
        return found
