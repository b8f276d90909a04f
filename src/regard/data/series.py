"""Series: numbers on an even grid of time, one of them to be forecast.

target   what is forecast
known    columns that are known ahead of it, as a forecast of the weather or the plan of a shop is: only those named
past     columns that were measured, read up to the moment of the forecast and never beyond it
static   what stays the same all along a series, and tells it from others
calendar is known of every time
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from regard.data.gaps import refuse_gaps, refuse_missing
from regard.data.grid import DAY, further, is_months, ticks
from regard.errors import DataError, UsageError
from regard.storage.arrays import slices

CALENDAR = ("hour sin", "hour cos", "weekday sin", "weekday cos", "year sin", "year cos", "weekend", "sunday")
# 1970-01-01 was a Thursday: Monday is weekday 0.
FIRST_WEEKDAY = 3
DAYS_PER_YEAR = 365.2425
AT_ONCE = 1 << 16  # steps that are looked at together


@dataclass(frozen=True)
class Roles:
    """Which column of a file is what.

    time     None: one called time, date, datetime, timestamp or ds, or the first of dates.
    target   None: the only one of numbers, or the one called target, y, price or value.
    known    those known ahead.
    past     those read as past alone. None: all other columns of numbers.
    series   tells several series in one file apart. None: there is one.
    static   columns that stay the same all along a series.
    """

    time: str | None = None
    target: str | None = None
    known: tuple[str, ...] = ()
    past: tuple[str, ...] | None = None
    series: str | None = None
    static: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Series:
    """A target and what goes with it, hour by hour or at any other even step.

    times     (n,) datetime64[s], each one `step` after the one before.
    target    (n,) float64; NaN in the last steps whose target is still to come.
    known     (n, K) float64.
    columns   the K names of what is known ahead.
    step      of the grid, see regard/data/grid.py.
    name      what it is called where it is refused. path: the file that it comes from, where there is one.
    past      (n, P) float64 of the columns `measured`; after the last target they may be NaN.
    static    a cell for each static column.
    label     what the series is called among several in one file.
    is_sparse whether target and past may have holes, which windows then keep clear of.

    The arrays of a large file are views of one that is mapped from a file without a name.
    """

    times: np.ndarray
    target: np.ndarray
    known: np.ndarray
    columns: tuple[str, ...]
    step: np.timedelta64
    target_name: str = "target"
    name: str = "series"
    past: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    measured: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    label: str = ""
    is_sparse: bool = False
    path: str = ""

    def __post_init__(self) -> None:
        n, shape = len(self.times), (len(self.times), len(self.columns))
        if not self.measured:
            object.__setattr__(self, "past", np.zeros((n, 0)))
        if self.target.shape != shape[:1] or self.known.shape != shape or self.past.shape != (n, len(self.measured)):
            raise DataError(
                f"{self.name}: a target {self.target.shape}, known values {self.known.shape} and past values "
                f"{self.past.shape} do not fit {n} times, {shape[1]} and {len(self.measured)} columns"
            )
        refuse_gaps(self.times, self.step, self.name)
        refuse_missing(self.times, self.known, list(self.columns), self.name)
        if not self.is_sparse:
            last = slice(0, self.observed)
            refuse_missing(self.times, self.target[last, None], [self.target_name], self.name)
            refuse_missing(self.times, self.past[last], list(self.measured), self.name)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def observed(self) -> int:
        """How many steps there are up to the last one with a target."""
        return observed(self.target)

    def part(self, start: int, stop: int) -> Series:
        """The steps start .. stop - 1."""
        rows = slice(start, stop)
        parts = {name: getattr(self, name)[rows] for name in ("times", "target", "known", "past")}
        return replace(self, **parts)

    def joined(self, other: Series) -> Series:
        """This one and then `other`, whose first time comes after the last."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in ("times", "target", "known", "past")}
        return replace(other, **{name: np.concatenate(pair) for name, pair in pairs.items()})

    def continued(self, count: int) -> Series:
        """With `count` steps more, of which nothing is known but when they are."""
        times = further(self.times, self.step, count)
        later = replace(
            self,
            times=times,
            target=np.full(count, np.nan),
            known=np.zeros((count, len(self.columns))),
            past=np.full((count, len(self.measured)), np.nan),
        )
        return self.joined(later)


@dataclass(frozen=True, eq=False)
class Panel:
    """The series of a file, all of one step. roles: of its columns, by name. notes: what its reader chose or mended.

    ignored  columns that are not read.
    """

    series: tuple[Series, ...]
    roles: Roles
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def step(self) -> np.timedelta64:
        return self.series[0].step


def observed(target: np.ndarray) -> int:
    """How many steps there are up to the last that is no NaN."""
    for stop in range(len(target), 0, -AT_ONCE):
        first = max(0, stop - AT_ONCE)
        present = np.flatnonzero(~np.isnan(target[first:stop]))
        if len(present):
            return first + int(present[-1]) + 1
    return 0


def origins(series: Series, history: int, horizon: int, every: int) -> np.ndarray:
    """The positions at which a forecast may be made: `history` steps lie before each, `horizon` targets from it on.

    They are `every` steps apart, counted from a Monday's midnight: 24 in a series of hours gives the beginnings of
    days, wherever the series itself begins.
    """
    positions = possible_origins(series, history, horizon, every)
    if not len(positions):
        raise DataError(
            f"{series.name}: in {series.observed} steps no forecast of {horizon} has {history} steps before it "
            f"(one origin every {every}); give a longer series or a shorter history (data.history)"
        )
    return positions


def possible_origins(series: Series, history: int, horizon: int, every: int) -> np.ndarray:
    """The same, and none where there are none."""
    for name, value in (("history", history), ("horizon", horizon), ("every", every)):
        if value < 1:
            raise UsageError(f"{name} must be at least 1, found {value}")
    # Times are a step apart, so that each is one tick after the one before.
    first = history + int(ticks(series.times[:1], series.step)[0])
    positions = np.arange(history + -first % every, max(history, series.observed - horizon + 1), every)
    if not series.is_sparse:
        return positions
    # How many holes there are before each step: a window without one has as many at its end as at its beginning.
    holes = np.concatenate([[0], np.cumsum(np.isnan(series.target))])
    has_holes = np.concatenate([np.isnan(part).any(1) for (part,) in slices(series.past)])
    holes_past = np.concatenate([[0], np.cumsum(has_holes)])
    is_whole = holes[positions + horizon] == holes[positions - history]
    return positions[is_whole & (holes_past[positions] == holes_past[positions - history])]


def calendar(times: np.ndarray, step: np.timedelta64 | None = None) -> np.ndarray:
    """(n, 8) numbers in -1 .. 1: where each time stands on the circles of day, week and year, and two kinds of rest.

    The time of day and the day of the year turn evenly; the weekday jumps at midnight, as people's habits do. Of months
    the weekday on which one begins says nothing, and is 0.
    """
    seconds = times.astype("datetime64[s]")
    days = seconds.astype("datetime64[D]")
    of_day = (seconds - days).astype(np.float64) / DAY
    weekday = (days.astype(np.int64) + FIRST_WEEKDAY) % 7
    of_year = (days - days.astype("datetime64[Y]")).astype(np.float64) / DAYS_PER_YEAR
    circles = [turn(2 * np.pi * part) for part in (of_day, weekday / 7, of_year) for turn in (np.sin, np.cos)]
    found = np.stack([*circles, weekday >= 5, weekday == 6], axis=1)
    if step is not None and is_months(step):
        found[:, [2, 3, 6, 7]] = 0.0
    return found
