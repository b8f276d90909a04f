"""The calendar as numbers: what is known ahead about any time, from its date alone."""

from __future__ import annotations

import numpy as np

CALENDAR = ("hour sin", "hour cos", "weekday sin", "weekday cos", "year sin", "year cos", "weekend", "sunday")
# 1970-01-01 was a Thursday: Monday is weekday 0.
FIRST_WEEKDAY = 3
DAYS_PER_YEAR = 365.2425


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
