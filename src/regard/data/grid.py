"""The grid of a series: times an even step apart, of seconds or of whole months, which are not equally long.

A step is a timedelta64: of seconds ("s") from a minute to weeks, or of months ("M") for months, quarters and years.

    step         season   a season is   naive forecasts            read before   forecast
    a minute       1440   a day         a day ago, a week ago             1440         96
    15 minutes       96   a day         a day ago, a week ago              672         96
    an hour          24   a day         a day ago, a week ago              168         24
    a day             7   a week        the last value, a week ago          49          7
    a week           52   a year        the last value, a year ago         104         13
    a month          12   a year        the last value, a year ago          36         12
"""

from __future__ import annotations

import re

import numpy as np

from regard.errors import DataError

# A Monday at midnight: grids of an hour, a day or a week are counted from where people count them.
MONDAY = np.datetime64("1970-01-05T00:00:00", "s")
MINUTE, HOUR, DAY, WEEK = 60, 3600, 86_400, 7 * 86_400
SHORTEST_MONTH = 28 * DAY
# When nobody says how many: steps of a season that are forecast, and that are read where a season is not longer.
MOST_AHEAD, MOST_READ = 96, 1008
SEASONS_READ = {"daily": 7, "weekly": 7}
UNITS = {"week": WEEK, "day": DAY, "hour": HOUR, "minute": MINUTE, "second": 1}
SPAN = re.compile(r"([1-9]\d*)([hdwmy])")
SECONDS = {"h": HOUR, "d": DAY, "w": WEEK}
MONTHS = {"m": 1, "y": 12}


def stamp(times: np.ndarray, position: int) -> str:
    """One of the times as people write it, such as 2013-03-31 02:00:00."""
    return str(times[position]).replace("T", " ")


def written(times: np.ndarray, step: np.timedelta64) -> list[str]:
    """Times as a file has them; where all are midnights of days or of longer steps, as dates."""
    days = times.astype("datetime64[D]")
    is_dates = (is_months(step) or seconds_of(step) >= DAY) and bool((days == times).all())
    return [str(time) for time in (days if is_dates else times)]


def is_months(step: np.timedelta64) -> bool:
    return np.datetime_data(step.dtype)[0] == "M"


def seconds_of(step: np.timedelta64) -> int:
    """Of a step that is not of months."""
    return int(step.astype("timedelta64[s]").astype(np.int64))


def months_of(step: np.timedelta64) -> int:
    """Of a step of months."""
    return int(step.astype(np.int64))


def named(step: np.timedelta64) -> str:
    """A step in words, such as "15 minutes"."""
    if is_months(step):
        count, name = months_of(step), "month"
    else:
        seconds = seconds_of(step)
        name = next(name for name, size in UNITS.items() if seconds % size == 0)
        count = seconds // UNITS[name]
    return f"{count} {name}s" if count > 1 else f"an {name}" if name == "hour" else f"a {name}"


def saved(step: np.timedelta64) -> str:
    """A step for a file: 3600s or 1M. `from_saved` reads it."""
    return f"{months_of(step)}M" if is_months(step) else f"{seconds_of(step)}s"


def from_saved(text: str) -> np.timedelta64 | None:
    """The step that `saved` wrote; None for what it never writes."""
    found = re.fullmatch(r"([1-9]\d{0,9})([sM])", text)
    return np.timedelta64(int(found[1]), found[2]) if found else None


def ticks(times: np.ndarray, step: np.timedelta64) -> np.ndarray:
    """How many steps after a Monday's midnight, or after a January, each time is."""
    if is_months(step):
        return times.astype("datetime64[M]").astype(np.int64) // months_of(step)
    return (times - MONDAY) // step


def further(times: np.ndarray, step: np.timedelta64, count: int) -> np.ndarray:
    """The `count` times after the last: the same day of later months, or their last day where all are last days."""
    return from_first(times, step, np.arange(1, count + 1), of=-1)


def from_first(times: np.ndarray, step: np.timedelta64, steps: np.ndarray, of: int = 0) -> np.ndarray:
    """The times so many steps after the first, or after `of`."""
    if not is_months(step):
        return times[of] + steps * step
    months = times[of].astype("datetime64[M]") + steps * step
    if _are_last_days(times):
        rest = times[of] - times[of].astype("datetime64[D]").astype("datetime64[s]")
        return ((months + 1).astype("datetime64[D]") - 1).astype("datetime64[s]") + rest
    return months.astype("datetime64[s]") + (times[of] - times[of].astype("datetime64[M]").astype("datetime64[s]"))


def grid_step(times: np.ndarray, name: str) -> np.timedelta64:
    """The step that most neighbours are apart. Times that go back, come twice or mix steps are refused."""
    if len(times) < 2:
        raise DataError(f"{name}: one time stamp makes no series; give two at least")
    differences = np.diff(times).astype(np.int64)
    for position in np.flatnonzero(differences <= 0)[:1]:
        before, after = stamp(times, position), stamp(times, position + 1)
        if before == after:
            raise DataError(
                f"{name}: {before} is there twice; keep one row (summer time repeats an hour: use UTC), or name the "
                f"column that tells several series apart (data.series = NAME)"
            )
        raise DataError(f"{name}: {after} comes after {before}; sort the rows by time")
    unit, word = ("M", "months") if _are_months(times, differences) else ("s", "seconds")
    differences = np.diff(times.astype(f"datetime64[{unit}]")).astype(np.int64)
    step = _commonest(differences)
    for position in np.flatnonzero(differences % step)[:1]:
        raise DataError(
            f"{name}: mixed steps, {differences[position]} {word} from {stamp(times, position)} to "
            f"{stamp(times, position + 1)} and {step} {word} elsewhere; bring all rows to one step"
        )
    return np.timedelta64(step, unit)


def cycles(step: np.timedelta64) -> dict[str, int]:
    """After how many steps things repeat, the season first; "last" is no cycle: the value of the step before."""
    if is_months(step):
        return {"yearly": 12 // months_of(step), "last": 1} if months_of(step) in (1, 2, 3, 4, 6) else {"last": 1}
    seconds = seconds_of(step)
    if seconds < DAY and DAY % seconds == 0:
        return {"daily": DAY // seconds, "weekly": WEEK // seconds}
    return {DAY: {"weekly": 7, "last": 1}, WEEK: {"yearly": 52, "last": 1}}.get(seconds, {"last": 1})


def usual(step: np.timedelta64, season: int | None = None) -> tuple[int, int]:
    """How many steps are read and forecast when nobody says so. season: of the series, where somebody says that."""
    (name, own), *_ = cycles(step).items()
    if season is None and not is_months(step) and seconds_of(step) == WEEK:
        return 2 * own, own // 4
    season = season or own
    if season == 1:
        return 8, 4
    return season * max(1, min(SEASONS_READ.get(name, 3), MOST_READ // season)), min(season, MOST_AHEAD)


def is_by_the_day(step: np.timedelta64) -> bool:
    """Whether several steps make a day: forecasts are then made at the beginnings of days, and else at any step."""
    return not is_months(step) and seconds_of(step) < DAY


def steps_in(span: str, step: np.timedelta64) -> int:
    """How many steps a span such as 28d is; 0 where it is none, or none of steps like these."""
    found = SPAN.fullmatch(span)
    if found is None or (found[2] in MONTHS) is not is_months(step):
        return 0
    if is_months(step):
        return int(found[1]) * MONTHS[found[2]] // months_of(step)
    return int(found[1]) * SECONDS[found[2]] // seconds_of(step)


def spans(step: np.timedelta64) -> str:
    """How a span of such steps is written, for messages."""
    return "months or years such as 6m or 2y" if is_months(step) else "hours, days or weeks such as 24h, 28d or 4w"


def _commonest(differences: np.ndarray) -> int:
    # Of steps that are equally common the shortest, so that the longer ones are gaps.
    found, counts = np.unique(differences, return_counts=True)
    return int(found[counts.argmax()])


def _are_months(times: np.ndarray, differences: np.ndarray) -> bool:
    """Whether every time is the same moment of a month, or its last day, as those of no other even step are."""
    if differences.min() < SHORTEST_MONTH:
        return False
    months = times.astype("datetime64[M]")
    return len(set((times - months.astype("datetime64[s]")).tolist())) == 1 or _are_last_days(times)


def _are_last_days(times: np.ndarray) -> bool:
    """Whether all are the same moment of the last days of months, such as 31 January and 29 February."""
    days = times.astype("datetime64[D]")
    last = (days + 1).astype("datetime64[M]") != days.astype("datetime64[M]")
    return bool(last.all()) and len(set((times - days).tolist())) == 1
