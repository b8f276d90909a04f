"""Series: numbers on an even grid of time, one to be forecast and others that are known ahead of it.

What is uneven is refused by its time stamp: a hole that nobody sees shifts every day that comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from regard.data.grid import fill_gaps, grid_step, interpolate, refuse_gaps, refuse_missing
from regard.data.table import Table, read_table
from regard.errors import DataError, UsageError, nearest

GAPS = ("refuse", "interpolate")
TIME_NAMES = ("time", "date", "datetime", "timestamp", "ds")
TARGET_NAMES = ("price", "target", "value", "y")
# A Monday at midnight: grids of an hour, a day or a week are counted from where people count them.
MONDAY = np.datetime64("1970-01-05T00:00:00", "s")


@dataclass(frozen=True, eq=False)
class Series:
    """A target and what is known ahead of it, hour by hour or at any other even step.

    times        (n,) datetime64[s], each one `step` after the one before.
    target       (n,) float64; NaN in the last steps whose target is still to come.
    known        (n, K) float64.
    columns      the K names of what is known ahead.
    step         timedelta64[s] of the grid.
    target_name  the name of the target.
    name         what the series is called where it is refused.
    notes        what its reader chose or mended.
    """

    times: np.ndarray
    target: np.ndarray
    known: np.ndarray
    columns: tuple[str, ...]
    step: np.timedelta64
    target_name: str = "target"
    name: str = "series"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.times), len(self.columns))
        if self.target.shape != shape[:1] or self.known.shape != shape:
            raise DataError(
                f"{self.name}: a target {self.target.shape} and known values {self.known.shape} "
                f"do not fit {shape[0]} times and {shape[1]} columns"
            )
        refuse_gaps(self.times, self.step, self.name)
        refuse_missing(self.times, self.target[: self.observed, None], [self.target_name], self.name)
        refuse_missing(self.times, self.known, list(self.columns), self.name)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def observed(self) -> int:
        """How many steps there are up to the last one with a target."""
        return _observed(self.target)

    def part(self, start: int, stop: int) -> Series:
        """The steps start .. stop - 1."""
        rows = slice(start, stop)
        return replace(self, times=self.times[rows], target=self.target[rows], known=self.known[rows])


def read_series(
    path: str,
    *,
    time: str | None = None,
    target: str | None = None,
    known: str | None = None,
    gaps: str = "refuse",
    future: bool = False,
) -> Series:
    """The series of a CSV file with a header, also compressed.

    time    the column of time stamps. None: one called time, date, datetime, timestamp or ds, or the first of dates.
    target  the column to forecast. None: one called price, target, value or y, or the first of numbers.
    known   columns known ahead, with commas between; "" for none. None: all other columns of numbers.
    gaps    what to do about missing time stamps and cells: "refuse" them or "interpolate" them linearly.
    future  whether rows at the end may lack the target, as the steps to be forecast do.
    """
    if gaps not in GAPS:
        raise UsageError(f"gaps = {gaps!r} is not a choice{nearest(gaps, GAPS)}")
    table = read_table(path)
    time = _time_column(table, time)
    target = _target_column(table, target, time)
    names = _known_columns(table, known, (time, target))
    times = table.times(time)
    step = grid_step(times, path)
    values = np.stack([table.numbers(column) for column in (target, *names)], axis=1)
    notes = (f"known ahead: {', '.join(names)}",) if known is None and names else ()
    if gaps == "interpolate":
        times, values, n_added = fill_gaps(times, values, step, path)
        n_empty = int(np.isnan(values).sum()) - n_added * values.shape[1]
        values = _without_holes(times, values, [target, *names], path, future)
        notes += (f"filled in {n_added} missing rows and {n_empty} empty cells",) if n_added + n_empty else ()
    elif not future:
        refuse_missing(times, values[:, :1], [target], path)
    return Series(times, values[:, 0], values[:, 1:], tuple(names), step, target, path, notes)


def origins(series: Series, history: int, horizon: int, every: int) -> np.ndarray:
    """The positions at which a forecast may be made: `history` steps lie before each, `horizon` targets from it on.

    They are `every` steps apart, counted from a Monday's midnight: 24 in a series of hours gives the beginnings of
    days, wherever the series itself begins.
    """
    for name, value in (("history", history), ("horizon", horizon), ("every", every)):
        if value < 1:
            raise UsageError(f"{name} must be at least 1, found {value}")
    positions = np.arange(history, max(history, series.observed - horizon + 1))
    ticks = (series.times[positions] - MONDAY) // series.step
    positions = positions[ticks % every == 0]
    if not len(positions):
        raise DataError(
            f"{series.name}: in {series.observed} steps no forecast of {horizon} has {history} steps before it "
            f"(one origin every {every}); give a longer series or a shorter history"
        )
    return positions


def _observed(target: np.ndarray) -> int:
    present = np.flatnonzero(~np.isnan(target))
    return int(present[-1]) + 1 if len(present) else 0


def _without_holes(times: np.ndarray, values: np.ndarray, columns: list[str], path: str, future: bool) -> np.ndarray:
    """Values with every hole filled in, the target's end aside where it lies in the future."""
    last = _observed(values[:, 0]) if future else len(values)
    result = values.copy()
    result[:last, :1] = interpolate(times[:last], values[:last, :1], columns[:1], path)
    result[:, 1:] = interpolate(times, values[:, 1:], columns[1:], path)
    return result


def _time_column(table: Table, name: str | None) -> str:
    if name is not None:
        return table.column(name, "time")
    found = [column for column in table.cells if column.lower() in TIME_NAMES] + table.dated()
    if not found:
        raise DataError(f"{table.path}: no column holds times such as 2013-01-31 23:00; say which does (time = NAME)")
    return found[0]


def _target_column(table: Table, name: str | None, time: str) -> str:
    if name is not None:
        return table.column(name, "target")
    numeric = table.numeric(but=(time,))
    if not numeric:
        raise DataError(f"{table.path}: no column beside {time!r} holds numbers, so there is nothing to forecast")
    return next((column for column in numeric if column.lower() in TARGET_NAMES), numeric[0])


def _known_columns(table: Table, names: str | None, taken: tuple[str, str]) -> list[str]:
    if names is None:
        return table.numeric(but=taken)
    chosen = [table.column(name.strip(), "known") for name in names.split(",") if name.strip()]
    for name in chosen:
        if name in taken or chosen.count(name) > 1:
            raise UsageError(f"known = {names!r}: {name!r} is the time, the target or there twice; leave it out")
    return chosen
