"""Grids: times at an even step, what breaks one, and how missing steps are filled in."""

from __future__ import annotations

from collections import Counter

import numpy as np

from regard.errors import DataError


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
