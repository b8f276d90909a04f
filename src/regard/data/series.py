"""Series: numbers on an even grid of time, one to be forecast and others that are known ahead of it.

What is uneven is refused by its time stamp: a hole that nobody sees shifts every day that comes after it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from regard.data.table import Table, read_table
from regard.errors import DataError, UsageError, nearest

GAPS = ("refuse", "interpolate")
TIME_NAMES = ("time", "date", "datetime", "timestamp", "ds")
TARGET_NAMES = ("price", "target", "value", "y")
# A Monday at midnight: grids of an hour, a day or a week are counted from where people count them.
MONDAY = np.datetime64("1970-01-05T00:00:00", "s")
CALENDAR = ("hour sin", "hour cos", "weekday sin", "weekday cos", "year sin", "year cos", "weekend", "sunday")
# 1970-01-01 was a Thursday: Monday is weekday 0.
FIRST_WEEKDAY = 3
DAYS_PER_YEAR = 365.2425


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


def stamp(times: np.ndarray, position: int) -> str:
    """One of the times as people write it, such as 2013-03-31 02:00:00."""
    return str(times[position]).replace("T", " ")


def grid_step(times: np.ndarray, name: str) -> np.timedelta64:
    """The step that most neighbours are apart. Times that go back, come twice or mix steps are refused."""
    if len(times) < 2:
        raise DataError(f"{name}: one time stamp makes no series; give two at least")
    differences = np.diff(times).astype(np.int64)
    for position in np.flatnonzero(differences <= 0)[:1]:
        before, after = stamp(times, position), stamp(times, position + 1)
        if before == after:
            raise DataError(f"{name}: {before} is there twice; keep one row (summer time repeats an hour: use UTC)")
        raise DataError(f"{name}: {after} comes after {before}; sort the rows by time")
    counts = Counter(differences.tolist())
    # Of steps that are equally common the shortest, so that the longer ones are gaps.
    step = min(counts, key=lambda difference: (-counts[difference], difference))
    for position in np.flatnonzero(differences % step)[:1]:
        raise DataError(
            f"{name}: mixed steps, {differences[position]} seconds from {stamp(times, position)} to "
            f"{stamp(times, position + 1)} and {step} seconds elsewhere; bring all rows to one step"
        )
    return np.timedelta64(step, "s")


def refuse_gaps(times: np.ndarray, step: np.timedelta64, name: str) -> None:
    """Refuse times that are not each one step after the one before."""
    for position in np.flatnonzero(np.diff(times) != step)[:1]:
        missing = stamp(times + step, position)
        raise DataError(f"{name}: {missing} is missing; add the row, or fill it in (gaps = interpolate)")


def refuse_missing(times: np.ndarray, values: np.ndarray, columns: list[str], name: str) -> None:
    """Refuse the first of (n, C) values that is not finite."""
    for row, column in np.argwhere(~np.isfinite(values))[:1]:
        raise DataError(
            f"{name}: {columns[column]} has no value at {stamp(times, row)}; "
            f"give one, or fill it in between its neighbours (gaps = interpolate)"
        )


def fill_gaps(
    times: np.ndarray, values: np.ndarray, step: np.timedelta64, name: str
) -> tuple[np.ndarray, np.ndarray, int]:
    """The whole grid, its values with NaN where there was no row, and how many rows that are."""
    places = (times - times[0]) // step
    n = int(places[-1]) + 1
    if n > 2 * len(times):
        widest = int(np.diff(places).argmax())
        raise DataError(
            f"{name}: {n - len(times)} of {n} time stamps are missing, most after {stamp(times, widest)}; "
            f"that is too much to fill in: check that time stamp"
        )
    whole = np.full((n, values.shape[1]), np.nan)
    whole[places] = values
    return times[0] + np.arange(n) * step, whole, n - len(times)


def interpolate(times: np.ndarray, values: np.ndarray, columns: list[str], name: str) -> np.ndarray:
    """(n, C) values with every NaN put on the line between its neighbours in time."""
    positions = np.arange(len(values))
    result = values.copy()
    for column, label in enumerate(columns):
        there = np.flatnonzero(~np.isnan(values[:, column]))
        for end in (0, len(values) - 1):
            if end not in there:
                raise DataError(
                    f"{name}: {label} has no value at {stamp(times, end)}, an end of the series, where there is "
                    f"nothing to interpolate from; give one or cut the rows off"
                )
        result[:, column] = np.interp(positions, there, values[there, column])
    return result


def calendar(times: np.ndarray) -> np.ndarray:
    """(n, 8) numbers in -1 .. 1: where each time stands on the circles of day, week and year, and two kinds of rest.

    The time of day and the day of the year turn evenly; the weekday jumps at midnight, as people's habits do.
    """
    seconds = times.astype("datetime64[s]")
    days = seconds.astype("datetime64[D]")
    of_day = (seconds - days).astype(np.float64) / 86_400
    weekday = (days.astype(np.int64) + FIRST_WEEKDAY) % 7
    of_year = (days - days.astype("datetime64[Y]")).astype(np.float64) / DAYS_PER_YEAR
    circles = [turn(2 * np.pi * part) for part in (of_day, weekday / 7, of_year) for turn in (np.sin, np.cos)]
    return np.stack([*circles, weekday >= 5, weekday == 6], axis=1)
