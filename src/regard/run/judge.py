"""By which weights examples are judged that are given to a run which has learnt its held-out part too.

What it has learnt of them would be told for what it can: examples of that part are judged by the run as it was before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from regard.errors import RegardError
from regard.run.trained import TrainedRun

R = TypeVar("R", bound=TrainedRun)


def warn(line: str) -> None:
    """Say something to whoever called `Run.evaluate` from Python."""
    warnings.warn(line, stacklevel=4)


def judge_of(run: R, examples: Sequence[Any], tell: Callable[[str], None]) -> R:
    """The run that judges examples: as it was before its refit where all of them were held out.

    tell  is given a line where any of them were.
    """
    learnt = _learnt_at_last(run)
    count = sum(run.task.typed(one) in learnt for one in examples) if learnt else 0
    if count == 0:
        return run
    if count == len(examples):
        tell("this is the held-out part: told by the run as it was before it learnt that too (train.refit)")
        return run.before_refit()
    tell(f"{count:,} of the {len(examples):,} were held out here and have been learnt since (train.refit)")
    return run


def _learnt_at_last(run: TrainedRun) -> set[str]:
    """The inputs of the held-out part that a run has learnt too, as far as its data is still there."""
    if run.is_refit:
        with suppress(RegardError):
            return {run.task.typed(one) for one in run.held_out("valid")}
    return set()
