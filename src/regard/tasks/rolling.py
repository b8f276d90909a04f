"""Rolling evaluation: a series is forecast block by block, each by a model that has learnt all that came before it.

    | trained on ............ | block 1 | block 2 | block 3 |
    | .............................learnt | block 2 |
    | ........................................learnt | block 3 |

Block: the training data up to a moment, and the moments of the block that begins there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.data.grid import further, named, spans, steps_in, ticks
from regard.data.series import Series
from regard.errors import DataError, UsageError
from regard.tasks.dataset import ExampleDataset
from regard.tasks.moment import moments_of, windows_of
from regard.tasks.series_processor import SeriesProcessor


@dataclass(frozen=True, eq=False)
class Block:
    """examples: what is told. dataset: everything before them, to learn from."""

    dataset: ExampleDataset[Any]
    examples: Sequence[Any]


def steps_of(every: str, step: np.timedelta64, horizon: int) -> int:
    """How many steps of a series a span such as 28d is; at least a horizon."""
    steps = steps_in(every, step)
    if steps < horizon:
        raise UsageError(
            f"--every {every}: give {spans(step)}, at least the {horizon} steps of {named(step)} that are forecast at "
            f"once"
        )
    return steps


def continued(
    own: Sequence[Series], borders: Sequence[int] | np.ndarray, others: Sequence[Series]
) -> tuple[list[Series], np.datetime64]:
    """The series that `others` are or go on, and the time from which on there is something new in them.

    own, borders   what the run was trained on, and where the training part of each ends.
    """
    by_label = {one.label: (one, int(border)) for one, border in zip(own, borders, strict=True)}
    unknown = [other.name for other in others if other.label not in by_label]
    if unknown:
        raise DataError(f"{unknown[0]}: the run was not trained on this series")
    found = [_continued(*by_label[other.label], other) for other in others]
    return [series for series, _ in found], min(series.times[first] for series, first in found)


def _continued(own: Series, border: int, other: Series) -> tuple[Series, int]:
    for role, found, wanted in (("known", other.columns, own.columns), ("past", other.measured, own.measured)):
        if found != wanted:
            raise DataError(
                f"{other.name} has {', '.join(found) or 'nothing'} as {role}, and the run was trained with "
                f"{', '.join(wanted) or 'nothing'}; give the same columns, or name them with data.{role}"
            )
    if other.times[0] <= own.times[border - 1]:
        if other.times[-1] <= own.times[border - 1]:
            raise DataError(f"{other.name}: ends within what the run was trained on, and has nothing new to forecast")
        return other, int(np.searchsorted(other.times, own.times[border - 1], side="right"))
    end = own.times[own.observed - 1]
    before = own.part(0, int(np.searchsorted(own.times, other.times[0])))
    goes_on = other.step.dtype == own.step.dtype and other.step == own.step
    if not goes_on or other.times[0] > further(before.times[: own.observed], own.step, 1)[0]:
        raise DataError(
            f"{other.name}: begins at {other.times[0]} and what the run was trained on, {own.name}, ends at {end}; to "
            f"learn all that came before a block there must be nothing missing between them"
        )
    return before.joined(other), len(before)


def blocks_of(
    series: Sequence[Series], ends: tuple[np.datetime64, np.datetime64], every: str, processor: SeriesProcessor
) -> list[Block]:
    """Blocks of `every` from the first of two moments up to the last."""
    horizon, step = processor.horizon, series[0].step
    steps = steps_of(every, step, horizon)
    which, places = windows_of(series, processor)
    times = np.array([series[n].times[place] for n, place in zip(which, places, strict=True)], "datetime64[s]")
    number, told = ticks(times, step), np.flatnonzero((times >= ends[0]) & (times <= ends[1]))
    rows = processor.rows(series, which, places)
    found = []
    while len(told):
        border = number[told[0]]
        block, told = told[number[told] < border + steps], told[number[told] >= border + steps]
        before = np.flatnonzero(number + horizon <= border)
        if not len(before):
            raise DataError(f"{series[0].name}: there is nothing to learn from before {times[block[0]]}")
        moments = moments_of(series, which[block], places[block])
        learnt, held = (replace(rows, origins=rows.origins[some]) for some in (before, block))
        dataset = ExampleDataset(series[0].name, processor, learnt, held, moments)
        found.append(Block(dataset, moments))
    if not found:
        raise DataError(f"{series[0].name}: has no whole horizon of {horizon} steps to forecast after what was learnt")
    return found
