"""The protocol of a comparison: what every model gets, and how it is spent. docs/compare.md says it in words.

budget B of a model   all that it may spend: seconds, tokens, steps or operations
rates                 a slice of B: a short training at each of some learning rates around the model's own, and at one
                      further out where the best of them is the lowest or the highest
seeds                 the rest of B in equal parts: a training at the best rate for each seed
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from regard.errors import UsageError
from regard.tasks import task_named
from regard.training import budget
from regard.training.budget import share

HAND = "comparison"  # where a setting comes from that the protocol gives
SLICE = 0.25
FACTORS = (1 / 3, 1.0, 3.0)
RATE_STEP = 3.0
MOST_SEEDS = 3
# A training shorter than this says little: with less, there are fewer seeds.
SHORTEST = 30.0
TEST_SHARE = 0.5
DEFAULT_TOTAL = 180.0
TOKENS_EACH = 20
# In a short time many small steps teach more than few large ones.
SMALL_BATCH, SHORT = 8, 120.0
# Operations a second of training that two cores and a large GPU reach, and those of a usual step of a small model.
SPEEDS = {"cpu": 1e10, "cuda": 2e13}
STEP = 5e9


@dataclass(frozen=True)
class Protocol:
    """What is held equal. factors: learning rates, as multiples of each model's own."""

    data: str
    task: str
    budget: str
    seeds: int
    factors: tuple[float, ...] = FACTORS
    slice: float = SLICE
    test: float = TEST_SHARE
    parameters: int | None = None

    @property
    def trial_budget(self) -> str:
        """Of one training at one learning rate."""
        return share(self.budget, self.slice / (len(self.factors) + 1)) if self.factors else "0"

    @property
    def may_extend(self) -> bool:
        """Whether the slice has room for a rate beyond the edge; of very few steps it has not."""
        whole, trial = budget.parse(self.budget), budget.parse(self.trial_budget)
        return (len(self.factors) + 1) * trial.amount <= self.slice * whole.amount * (1 + 1e-9)

    @property
    def main_budget(self) -> str:
        """Of one seed."""
        return share(self.budget, (1 - self.slice if self.factors else 1.0) / self.seeds)

    @property
    def metric(self) -> str:
        """What models are ranked by: the task's own score."""
        return task_named(self.task).metric

    @property
    def lower_is_better(self) -> bool:
        return task_named(self.task).lower_is_better

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def seeds_for(text: str, asked: int | None) -> int:
    """As many seeds as were asked for, or up to three as long as each gets half a minute or more."""
    if asked is not None:
        if asked < 1:
            raise UsageError(f"--seeds: at least 1, found {asked}")
        return asked
    whole = budget.parse(text)
    if whole.kind != "seconds":
        return MOST_SEEDS
    return max(1, min(MOST_SEEDS, int(whole.amount * (1 - SLICE) / SHORTEST)))


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
