"""What a series lacks: rows that are not there and cells that are empty, refused by their time stamp or made good.

refuse        a hole that nobody sees shifts every day that comes after it
interpolate   on the line between its neighbours, of which one comes later
forward       the value before it, which is all that was known at the time
skip          stays empty; windows that touch it are neither learnt from nor scored
"""

from __future__ import annotations

import numpy as np

from regard.data.grid import from_first, is_months, months_of, stamp, ticks
from regard.errors import DataError
from regard.storage.arrays import slices

GAPS = ("refuse", "interpolate", "forward", "skip")
WAYS = "data.gaps = interpolate, forward or skip"


def refuse_gaps(times: np.ndarray, step: np.timedelta64, name: str) -> None:
    """Refuse times that are not each one step after the one before."""
    months = is_months(step)
    apart = np.diff(times.astype("datetime64[M]")).astype(np.int64) if months else np.diff(times)
    for position in np.flatnonzero(apart != (months_of(step) if months else step))[:1]:
        missing = stamp(from_first(times, step, np.arange(1, 2), of=position), 0)
        raise DataError(f"{name}: {missing} is missing; add the row, or say what to do about it ({WAYS})")


def refuse_missing(times: np.ndarray, values: np.ndarray, columns: list[str], name: str) -> None:
    """Refuse the first of (n, C) values that is not finite."""
    for when, part in slices(times, values):
        for row, column in np.argwhere(~np.isfinite(part))[:1]:
            raise DataError(
                f"{name}: {columns[column]} has no value at {stamp(when, row)}; "
                f"give one, leave the column out, or say what to do about it ({WAYS})"
            )


def whole_grid(times: np.ndarray, step: np.timedelta64, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Every time of the grid, and the places of those that are there."""
    places = ticks(times, step)
    places = places - places[0]
    n = int(places[-1]) + 1
    if n > 2 * len(times):
        widest = int(np.diff(places).argmax())
        raise DataError(
            f"{name}: {n - len(times)} of {n} time stamps are missing, most after {stamp(times, widest)}; "
            f"that is too much to fill in: check that time stamp"
        )
    return from_first(times, step, np.arange(n)), places


def interpolate(times: np.ndarray, values: np.ndarray, column: str, name: str) -> np.ndarray:
    """(n,) values with every NaN put on the line between its neighbours in time."""
    there = np.flatnonzero(~np.isnan(values))
    for end in (0, len(values) - 1):
        if np.isnan(values[end]):
            raise DataError(
                f"{name}: {column} has no value at {stamp(times, end)}, an end of the series, where there is "
                f"nothing to interpolate from; give one or cut the rows off"
            )
    return np.interp(np.arange(len(values)), there, values[there])


def carry_forward(times: np.ndarray, values: np.ndarray, column: str, name: str) -> np.ndarray:
    """(n,) values with every NaN replaced by the value before it."""
    if np.isnan(values[0]):
        raise DataError(
            f"{name}: {column} has no value at {stamp(times, 0)}, the beginning of the series, where there "
            f"is nothing to carry forward; give one or cut the rows off"
        )
    return values[np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))))]


FILL = {"interpolate": interpolate, "forward": carry_forward}
