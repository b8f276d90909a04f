"""Windows of a series as fitted models meet them: what each sees and what came, and where days and weeks are in it.

The last 8 numbers known of every time are its place in the calendar (regard/data/series.py): sine and cosine of the
time of day, of the weekday and of the year, and whether it is a weekend and a Sunday.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.inputs import PastKnown

CALENDAR = 8
WEEK = 7  # days
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
    is_monthly = not known[:2, WEEKDAY : WEEKDAY + 2].any()  # of months the calendar has no weekdays
    if len(known) < 2 or is_monthly:
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


@dataclass(frozen=True)
class Channels:
    """Which numbers of a window are what, side by side.

    known (B, H, K)          those known ahead that change, those that never change along a series, the calendar's
    past (B, S, 1 + K + P)   the value, the same of past times, and what else was measured of them
    """

    n_measured: int = 0
    n_static: int = 0
    n_past: int = 0

    @property
    def n_known(self) -> int:
        """K."""
        return self.n_measured + self.n_static + CALENDAR

    def changing(self, past: Tensor) -> Tensor:
        """The value and all else that changes from time to time, (B, S, 1 + M + P)."""
        return torch.cat([past[..., : 1 + self.n_measured], past[..., 1 + self.n_known :]], -1)


@dataclass(frozen=True)
class WholeSeasons:
    """All that a linear forecast is told from, side by side: whole seasons of values, what is known ahead of the
    horizon and what else was measured of seasons before, what a series is, and the weekday of its first time.

    Of each column all times stand one after the other, so that a group is one column in one season.
    """

    channels: Channels
    horizon: int
    season: int
    lags: tuple[int, ...]
    known_lags: tuple[int, ...]

    @property
    def n_columns(self) -> int:
        """F."""
        channels = self.channels
        before = (channels.n_measured + channels.n_past) * self.season * len(self.known_lags)
        ahead = channels.n_measured * self.horizon
        return self.season * len(self.lags) + ahead + before + channels.n_static + WEEK

    def columns(self, past: Tensor, known: Tensor) -> Tensor:
        """(B, F)."""
        measured = self.channels.n_measured
        values = [self._season(past, lag)[..., 0] for lag in self.lags]
        before = [self.channels.changing(self._season(past, lag))[..., 1:] for lag in self.known_lags]
        static = known[:, 0, measured : measured + self.channels.n_static]
        days = F.one_hot(weekdays(known[:, 0]), WEEK).to(past.dtype)
        ahead = (one.transpose(1, 2).flatten(1) for one in (known[..., :measured], *before))
        return torch.cat([*values, *ahead, static, days], 1)

    def _season(self, past: Tensor, lag: int) -> Tensor:
        """All of the season so many seasons ago."""
        start = past.shape[1] - lag * self.season
        return past[:, start : start + self.season]


def in_parts(rows: WindowRows, chosen: np.ndarray) -> Iterator[tuple[PastKnown, Tensor]]:
    """Some windows and what came (B, H), a few hundred at a time, in float64."""
    for first in range(0, len(chosen), AT_ONCE):
        part = chosen[first : first + AT_ONCE]
        batch = rows.batch_of(part, part)
        yield PastKnown(batch.source.double(), batch.tokens.double()), batch.targets.double()


def example_windows(history: int, horizon: int, n_known: int, n_past: int = 0) -> ExampleWindows:
    """Windows of hours that were made up: what the laws are checked on."""
    n = history + 40 * horizon
    chance, hours = np.random.default_rng(0), np.arange(n)
    week = 2 * np.pi * (hours // 24 % 7) / 7
    day = 2 * np.pi * (hours % 24) / 24
    calendar = [np.sin(day), np.cos(day), np.sin(week), np.cos(week), *np.zeros((4, n))]
    known = np.concatenate([chance.standard_normal((n, n_known - CALENDAR)), np.stack(calendar, 1)], 1)
    values = np.sin(day) + known[:, : n_known - CALENDAR].sum(1) + 0.1 * chance.standard_normal(n)
    past = chance.standard_normal((n, n_past))
    return ExampleWindows(values, known, np.arange(history, n - horizon + 1, horizon), history, horizon, past)


@dataclass(frozen=True, eq=False)
class ExampleWindows:
    """values (n,), known (n, K), past (n, P); origins (m,): the first times that are forecast."""

    values: np.ndarray
    known: np.ndarray
    origins: np.ndarray
    history: int
    horizon: int
    past: np.ndarray

    @property
    def rows(self) -> ExampleWindows:
        return self

    @property
    def source(self) -> Tensor:
        before = self.origins[:, None] + np.arange(-self.history, 0)
        return torch.from_numpy(
            np.concatenate([self.values[before][..., None], self.known[before], self.past[before]], -1)
        )

    @property
    def tokens(self) -> Tensor:
        return torch.from_numpy(self.known[self.origins[:, None] + np.arange(self.horizon)])

    @property
    def targets(self) -> Tensor:
        return torch.from_numpy(self.values[self.origins[:, None] + np.arange(self.horizon)])

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> ExampleWindows:
        return replace(self, origins=self.origins[rows])
