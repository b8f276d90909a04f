"""The protocol of a comparison: what every model gets, and how it is spent. docs/compare.md says it in words.

budget B of a model   all that it may spend: seconds, tokens, steps or operations
rates                 a slice of B: short trainings at learning rates outward from the model's own (see `search`)
seeds, folds          the rest of B in equal parts: a training at the best rate for each seed, on each fold
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from regard.errors import UsageError
from regard.run.settings import COMPARISON
from regard.studies.search import FEWEST
from regard.tasks import task_named
from regard.training import budget
from regard.training.budget import share

HAND = COMPARISON  # where a setting comes from that the protocol gives
SLICE = 0.25
TRIALS = 6  # short trainings that the slice has room for, more where some are ended early
MOST_SEEDS = 3
# A training shorter than this says little: with less, there are fewer seeds.
SHORTEST = 30.0
TEST_SHARE = 0.5
TOKENS_EACH = 20
# In a short time many small steps teach more than few large ones.
SMALL_BATCH, SHORT = 8, 120.0
# Operations a second of training that two cores and a large GPU reach, and those of a usual step of a small model.
SPEEDS = {"cpu": 1e10, "cuda": 2e13}
STEP = 5e9


@dataclass(frozen=True)
class Protocol:
    """What is held equal.

    slice     the part of the budget that is for the search of a rate.
    folds     parts of the examples that are held out in turn; 1: one split.
    per_byte  texts are read in different tokens, and their losses told in bits a byte.
    judged_by the score that the data asks for, such as F1 of spans, where it is not the task's own.
    """

    data: str
    task: str
    budget: str
    seeds: int
    slice: float = SLICE
    test: float = TEST_SHARE
    parameters: int | None = None
    folds: int = 1
    per_byte: bool = False
    judged_by: str | None = None

    @property
    def trial_budget(self) -> str:
        """Of one training at one learning rate."""
        return share(self.budget, self.slice / TRIALS)

    def has_room(self, spent: float, trials: int = 1) -> bool:
        """Whether the slice has room for so many trials after `spent` of it."""
        whole, trial = budget.parse(self.budget), budget.parse(self.trial_budget)
        return spent + trials * trial.amount <= self.slice * whole.amount * (1 + 1e-9)

    @property
    def searches(self) -> bool:
        """Whether rates are tried; in very few steps there is no room for that."""
        return self.has_room(0.0, FEWEST)

    @property
    def main_budget(self) -> str:
        """Of one seed, on one fold."""
        return self.whole_budget if not self.searches else share(self.budget, (1 - self.slice) / self.trainings)

    @property
    def whole_budget(self) -> str:
        """The same of a model for which no rate is sought."""
        return share(self.budget, 1 / self.trainings)

    def fold(self, number: int) -> dict[str, str]:
        """The settings of a fold: what is held out in it."""
        return {"data.valid": f"fold:{number + 1}/{self.folds}"} if self.folds > 1 else {}

    @property
    def trainings(self) -> int:
        """Of each model, at its best rate."""
        return self.seeds * self.folds

    @property
    def metric(self) -> str:
        """What models are ranked by: the task's own score, or the one that its data asks for."""
        return "bits_per_byte" if self.per_byte else self.judged_by or task_named(self.task).metric

    def of_data(self, processor: Any) -> Protocol:
        """The same when the data is read: what it asks to be judged by is known."""
        known = task_named(self.task)
        found = known.judged_by(processor)
        return self if found == known.metric else replace(self, judged_by=found)

    @property
    def lower_is_better(self) -> bool:
        return self.per_byte or task_named(self.task).lower_is_better

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def seeds_for(text: str, asked: int | None, folds: int = 1) -> int:
    """As many seeds as were asked for, or up to three as long as each training gets half a minute or more."""
    if asked is not None:
        if asked < 1:
            raise UsageError(f"--seeds: at least 1, found {asked}")
        return asked
    whole = budget.parse(text)
    if whole.kind != "seconds":
        return MOST_SEEDS
    return max(1, min(MOST_SEEDS, int(whole.amount * (1 - SLICE) / SHORTEST / folds)))


def suitable_size(text: str, device: str) -> int:
    """Parameters that suit a budget: those that would see 20 tokens each (Hoffmann et al. 2022), 6 operations a token.

    C = 6 N D and D = 20 N give N = sqrt(C / 120). Time and steps are turned into operations by a usual speed and by a
    usual step: on a slower machine, or with more operations a parameter, fewer tokens are seen.

    >>> suitable_size("1m", "cpu"), suitable_size("2Mtokens", "cpu")
    (71000, 100000)
    """
    whole = budget.parse(text)
    if whole.kind == "tokens":
        return round(whole.amount / TOKENS_EACH)
    speed = SPEEDS["cuda" if device.startswith("cuda") else "cpu"]
    operations = {"seconds": whole.amount * speed, "flops": whole.amount, "steps": whole.amount * STEP}[whole.kind]
    return round(math.sqrt(operations / (6 * TOKENS_EACH)) / 1000) * 1000


def is_short(text: str) -> bool:
    """Whether a training is so short that its batches should be small."""
    whole = budget.parse(text)
    return whole.kind == "seconds" and whole.amount < SHORT
