"""Windows of a series as fitted models meet them: what each sees and what came, and where days and weeks are in it.

The last 8 numbers known of every time are its place in the calendar (regard/data/series.py): sine and cosine of the
time of day, of the weekday and of the year, and whether it is a weekend and a Sunday.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from regard.core.inputs import PastKnown

CALENDAR = 8
WEEKDAY = -6  # where the sine of the weekday stands, its cosine after it
AT_ONCE = 256


class WindowRows(Protocol):
    """Windows by number; see `regard.data.rows.SeriesRows`."""

    @property
    def known(self) -> np.ndarray: ...
    @property
    def origins(self) -> np.ndarray: ...
    @property
    def history(self) -> int: ...
    @property
    def horizon(self) -> int: ...
    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Any: ...


@runtime_checkable
class Windows(Protocol):
    """What the series task gives to a fit."""

    @property
    def rows(self) -> WindowRows: ...


@dataclass(frozen=True)
class Seasons:
    """Steps of a day and of a week; 1 where a step is longer."""

    day: int
    week: int


def seasons_of(known: np.ndarray) -> Seasons:
    """The seasons of a series, told from the calendar of its first two times."""
    if len(known) < 2:
        return Seasons(1, 1)
    hour, weekday = (np.arctan2(known[:2, at], known[:2, at + 1]) / (2 * np.pi) for at in (-CALENDAR, WEEKDAY))
    part, days = (float(hour[1] - hour[0]) % 1.0, round(7 * float(weekday[1] - weekday[0])) % 7)
    if min(part, 1 - part) > 1e-6:
        day = max(1, round(1 / part))
        return Seasons(day, 7 * day)
    return Seasons(1, max(1, round(7 / days)) if days else 1)


def weekdays(known: Tensor) -> Tensor:
    """0 for a Monday to 6 for a Sunday, of the calendar (..., K)."""
    angle = torch.atan2(known[..., WEEKDAY], known[..., WEEKDAY + 1])
    return (7 * angle / (2 * math.pi)).round().long() % 7


def in_parts(rows: WindowRows, chosen: np.ndarray) -> Iterator[tuple[PastKnown, Tensor]]:
    """Some windows and what came (B, H), a few hundred at a time, in float64."""
    for first in range(0, len(chosen), AT_ONCE):
        part = chosen[first : first + AT_ONCE]
        batch = rows.batch_of(part, part)
        yield PastKnown(batch.source.double(), batch.tokens.double()), batch.targets.double()


def example_windows(history: int, horizon: int, n_known: int) -> ExampleWindows:
    """Windows of hours that were made up: what the laws are checked on."""
    n = history + 40 * horizon
    chance, hours = np.random.default_rng(0), np.arange(n)
    week = 2 * np.pi * (hours // 24 % 7) / 7
    day = 2 * np.pi * (hours % 24) / 24
    calendar = [np.sin(day), np.cos(day), np.sin(week), np.cos(week), *np.zeros((4, n))]
    known = np.concatenate([chance.standard_normal((n, n_known - CALENDAR)), np.stack(calendar, 1)], 1)
    values = np.sin(day) + known[:, : n_known - CALENDAR].sum(1) + 0.1 * chance.standard_normal(n)
    return ExampleWindows(values, known, np.arange(history, n - horizon + 1, horizon), history, horizon)


@dataclass(frozen=True, eq=False)
class ExampleWindows:
    """values (n,), known (n, K); origins (m,): the first times that are forecast."""

    values: np.ndarray
    known: np.ndarray
    origins: np.ndarray
    history: int
    horizon: int

    @property
    def rows(self) -> ExampleWindows:
        return self

    @property
    def source(self) -> Tensor:
        before = self.origins[:, None] + np.arange(-self.history, 0)
        return torch.from_numpy(np.concatenate([self.values[before][..., None], self.known[before]], -1))

    @property
    def tokens(self) -> Tensor:
        return torch.from_numpy(self.known[self.origins[:, None] + np.arange(self.horizon)])

    @property
    def targets(self) -> Tensor:
        return torch.from_numpy(self.values[self.origins[:, None] + np.arange(self.horizon)])

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> ExampleWindows:
        return ExampleWindows(self.values, self.known, self.origins[rows], self.history, self.horizon)
