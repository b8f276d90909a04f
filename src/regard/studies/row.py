"""Row: what became of one model of a comparison, and the scores of its trainings on the test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import CheckpointError
from regard.evaluation.each import EachScore
from regard.storage.arrays import packed, read_packed
from regard.storage.disk import publish

SCORES = "test_scores.npy"  # beside a run of a comparison: values, weights and, of a text, bytes of each example
LARGEST = 1 << 26


@dataclass
class Row:
    """What became of one model.

    rates    learning rates that were tried, and the held-out loss of each; None where it diverged.
    on_edge  one further out might be better than the best of them: the budget ended before both neighbours were tried.
    runs     what was measured of each training: for every seed one, or one of each fold.
    failed   why there is nothing, if there is nothing. code: the exit code of that failure.
    stopped  by a signal: tested are the seeds that had ended. held_out: the lowest loss of the one that had not.
    pretrained  the run that it began with, which had learnt before; of none nothing.
    """

    label: str
    model: str
    parameters: int
    note: str = ""
    lr: float | None = None
    rates: list[tuple[float, float | None]] = field(default_factory=list)
    on_edge: bool = False
    runs: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""
    code: int = 0
    stopped: bool = False
    held_out: float | None = None
    pretrained: str = ""

    @property
    def fitted(self) -> bool:
        """Whether it is fitted at once: only what learns by steps has parameters of a common size."""
        return not self.parameters

    @property
    def told(self) -> str:
        """Its name in a table."""
        return f"{self.label} (pretrained)" if self.pretrained else self.label

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_finite(self) -> bool:
        """Whether every score is a number."""
        return all(math.isfinite(run["score"]) for run in self.runs)


def finished(rows: Sequence[Row]) -> list[Row]:
    """Those of which something was measured."""
    return [row for row in rows if row.runs]


def trainings(rows: Sequence[Row], by_time: bool) -> dict[str, list[EachScore]]:
    """Of each model the scores on every test example, by seed; of several folds those of all, one after the other.

    by_time  examples are neighbours in time and alike: some together are drawn as one.
    Where a run does not tell them, the whole of each run is one: examples are not set against the score of a whole.
    """
    told = {row.label: [read_each(run, by_time) for run in row.runs] for row in rows}
    is_told = all(each is not None for found in told.values() for each in found)
    joined = {}
    for row in rows:
        by_seed: dict[int, list[EachScore]] = {}
        for run, each in zip(row.runs, told[row.label], strict=True):
            found = EachScore.mean_of([run["score"]]) if each is None or not is_told else each
            by_seed.setdefault(run["seed"], []).append(found)
        joined[row.label] = [_joined(parts) for parts in by_seed.values()]
    return joined


def keep_each(path: Path, each: EachScore) -> None:
    """Write down the score of every example beside the run that it is of."""
    columns = [each.values, each.weights, *([] if each.sizes is None else [each.sizes])]
    publish(path / SCORES, [packed(np.stack(columns))])


def read_each(run: dict[str, Any], by_time: bool) -> EachScore | None:
    """The score of every example of a training; None where that was not told."""
    try:
        columns = read_packed(Path(run["path"]) / SCORES, LARGEST)
    except (FileNotFoundError, CheckpointError):
        return None
    if columns.ndim != 2 or len(columns) not in (2, 3) or not np.isfinite(columns).all():
        return None
    each = EachScore(*columns)
    return each.in_blocks(round(len(each) ** (1 / 3))) if by_time else each


def _joined(parts: Sequence[EachScore]) -> EachScore:
    return EachScore(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("values", "weights")))
