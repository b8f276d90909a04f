"""Rolling evaluation: a series is forecast block by block, each by a model that has learnt all that came before it.

    | trained on ............ | block 1 | block 2 | block 3 |
    | .............................learnt | block 2 |
    | ........................................learnt | block 3 |

Block: the training data up to a moment, and the moments of the block that begins there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.data.series import Series, origins
from regard.errors import DataError, UsageError
from regard.tasks.dataset import ExampleDataset
from regard.tasks.moment import Moment, SeriesProcessor

SPAN = re.compile(r"([1-9]\d*)([hdw])")
SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}


@dataclass(frozen=True, eq=False)
class Block:
    """examples: what is told. dataset: everything before them, to learn from."""

    dataset: ExampleDataset[Any]
    examples: Sequence[Any]


def steps_of(every: str, series: Series, horizon: int) -> int:
    """How many steps of a series a span such as 28d is; at least a horizon."""
    found = SPAN.fullmatch(every)
    seconds = int(series.step.astype(np.int64))
    steps = int(found[1]) * SECONDS[found[2]] // seconds if found else 0
    if steps < horizon:
        raise UsageError(
            f"--every {every}: give hours, days or weeks such as 24h, 28d or 4w, at least the {horizon} steps of "
            f"{seconds:,} s that are forecast at once"
        )
    return steps


def continued(own: Series, border: int, other: Series) -> tuple[Series, int]:
    """The series that `other` is or goes on, and where what is new in it begins.

    own, border   what the run was trained on, and where its training part ends.
    """
    if other.columns != own.columns:
        raise DataError(
            f"{other.name} knows {', '.join(other.columns) or 'nothing'} ahead, and the run was trained with "
            f"{', '.join(own.columns) or 'nothing'}; give the same columns, or name them with data.known"
        )
    if other.times[0] <= own.times[border - 1]:
        if other.times[-1] <= own.times[border - 1]:
            raise DataError(f"{other.name}: ends within what the run was trained on, and has nothing new to forecast")
        return other, int(np.searchsorted(other.times, own.times[border - 1], side="right"))
    end = own.times[own.observed - 1]
    before = own.part(0, int(np.searchsorted(own.times, other.times[0])))
    if other.step != own.step or other.times[0] > end + own.step:
        raise DataError(
            f"{other.name}: begins at {other.times[0]} and what the run was trained on, {own.name}, ends at {end}; to "
            f"learn all that came before a block there must be nothing missing between them"
        )
    joined = replace(
        other,
        times=np.concatenate([before.times, other.times]),
        target=np.concatenate([before.target, other.target]),
        known=np.concatenate([before.known, other.known]),
    )
    return joined, len(before)


def blocks_of(series: Series, first: int, last: int, every: str, processor: SeriesProcessor) -> list[Block]:
    """Blocks of `every` from the moment `first` up to that of `last`."""
    horizon = processor.horizon
    steps = steps_of(every, series, horizon)
    places = origins(series, processor.history, horizon, horizon)
    told = places[(places >= first) & (places <= last)]
    found = []
    while len(told):
        border = int(told[0])
        block, told = told[told < border + steps], told[told >= border + steps]
        before = places[places + horizon <= border]
        if not len(before):
            raise DataError(f"{series.name}: there is nothing to learn from before {series.times[border]}")
        rows = processor.rows(series, before)
        moments = [Moment(series, int(place)) for place in block]
        dataset = ExampleDataset(series.name, processor, rows, replace(rows, origins=block), moments)
        found.append(Block(dataset, moments))
    if not found:
        raise DataError(f"{series.name}: has no whole horizon of {horizon} steps to forecast after what was learnt")
    return found
