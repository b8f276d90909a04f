"""Past: a series as far as it is known, with the time of each value and what is known ahead of each step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from regard.data.grid import further, stamp, written
from regard.errors import nearest
from regard.interop.sklearn.refusal import BadData, BadSetting

STEPS = {
    "minute": np.timedelta64(60, "s"),
    "hour": np.timedelta64(3600, "s"),
    "day": np.timedelta64(86_400, "s"),
    "week": np.timedelta64(7 * 86_400, "s"),
    "month": np.timedelta64(1, "M"),
    "year": np.timedelta64(12, "M"),
}
STEP = re.compile(r"(?:([1-9]\d{0,5}) )?([a-z]+?)s?")
# A series without times of its own ends before a Monday's midnight, where a day, a week and a month of forecasts begin.
MONDAY = np.datetime64("2001-01-01T00:00:00", "s")
TIME, TARGET = "time", "y"


@dataclass(frozen=True, eq=False)
class Past:
    """times (n,) datetime64[s], values (n,), known (n, K) with its names. dated: whether times are the series' own."""

    times: np.ndarray
    values: np.ndarray
    known: np.ndarray
    names: tuple[str, ...]
    dated: bool

    def __len__(self) -> int:
        return len(self.values)

    def columns(self, step: np.timedelta64, ahead: np.ndarray | None = None) -> Mapping[str, Sequence[Any]]:
        """The columns of a table; of the rows to come, where some are given, the target is empty."""
        n = 0 if ahead is None else len(ahead)
        times = self.times if not n else np.concatenate([self.times, further(self.times, step, n)])
        known = self.known if ahead is None else np.concatenate([self.known, ahead])
        columns: dict[str, Sequence[Any]] = {TIME: written(times, step), TARGET: [*self.values.tolist(), *[None] * n]}
        return columns | {name: known[:, place].tolist() for place, name in enumerate(self.names)}

    def last(self, n: int) -> Past:
        return replace(self, times=self.times[-n:], values=self.values[-n:], known=self.known[-n:])

    def followed_by(self, X: Any, y: Any, step: np.timedelta64) -> Past:
        """The past with the values that came after it."""
        values, known = values_of(y), self.known_of(X, len(y))
        times = further(self.times, step, len(values))
        own = _index(y if X is None else X)
        if self.dated and own is not None and not np.array_equal(own, times):
            raise BadData(f"the values begin at {own[0]}, and the series goes on at {stamp(times, 0)}")
        return replace(
            self,
            times=np.concatenate([self.times, times]),
            values=np.concatenate([self.values, values]),
            known=np.concatenate([self.known, known]),
        )

    def known_of(self, X: Any, n: int) -> np.ndarray:
        """What is known of n steps, (n, K)."""
        if X is None and not self.names:
            return np.zeros((n, 0))
        found, names = table_of_numbers(X)
        if found.shape[1] != len(self.names):
            raise BadData(
                f"X has {found.shape[1]} features, but {len(self.names)} were known when it was fitted"
                + (f" ({', '.join(self.names)})" if self.names else "")
            )
        if names is not None and all(own in names for own in self.names):
            found = found[:, [names.index(own) for own in self.names]]
        if len(found) != n:
            raise BadData(f"found inconsistent numbers of samples: {len(found)} rows in X and {n} values in y")
        return found


def past_of(X: Any, y: Any, step: str) -> Past:
    """A series with what is known ahead of it. step: how far values are apart that have no times of their own."""
    values = values_of(y)
    known, names = (np.zeros((len(values), 0)), ()) if X is None else table_of_numbers(X)
    if len(known) != len(values):
        raise BadData(f"found inconsistent numbers of samples: {len(known)} rows in X and {len(values)} values in y")
    own = _index(y if X is None or _index(X) is None else X)
    times = own if own is not None else made_up(len(values), step_named(step))
    return Past(times, values, known, _names(names, known.shape[1]), own is not None)


def values_of(y: Any) -> np.ndarray:
    """The values of a series, (n,)."""
    try:
        values = np.asarray(column_or_1d(y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadData(f"y must be a series of numbers, of one dimension: {error}") from None
    if not len(values):
        raise BadData("y has 0 sample(s), and a series has two values at least")
    if np.isinf(values).any():
        raise BadData("y contains infinity; mend it or leave it out")
    return values


def table_of_numbers(X: Any) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """X as numbers (n, K), and the names of its columns where it has any."""
    columns = getattr(X, "columns", None)
    try:
        found = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadData(f"X must hold numbers that are known ahead of each step: {error}") from None
    if found.ndim != 2:
        raise BadData(f"X must have a row for each step and a column for what is known, found {found.ndim} dimensions")
    if not np.isfinite(found).all():
        raise BadData("X contains NaN or infinity; what is known ahead is known of every step")
    return found, None if columns is None else tuple(str(name) for name in columns)


def step_named(text: Any) -> np.timedelta64:
    """The step that somebody writes: "day", "hour", "15 minutes", "3 months"."""
    found = STEP.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2] not in STEPS:
        hint = nearest(str(text), STEPS)
        raise BadSetting(f"step={text!r} is no step of a series{hint}; say one such as 'hour' or '15 minutes'")
    return STEPS[found[2]] * int(found[1] or 1)


def made_up(n: int, step: np.timedelta64) -> np.ndarray:
    """Times for a series without any, (n,) datetime64[s]: the next one would be a Monday's midnight."""
    back = np.arange(-n, 0)
    if np.datetime_data(step.dtype)[0] == "M":
        return (MONDAY.astype("datetime64[M]") + back * step).astype("datetime64[s]")
    return MONDAY + back * step


def _index(data: Any) -> np.ndarray | None:
    """The times by which a Series or a frame is indexed, in UTC where they say so; None where it has none."""
    index = getattr(data, "index", None)
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()  # type: ignore[union-attr]
    if getattr(index, "tz", None) is not None:
        index = index.tz_convert(None)  # type: ignore[union-attr]
    is_time = np.issubdtype(getattr(index, "dtype", np.dtype(int)), np.datetime64) if hasattr(index, "dtype") else False
    return np.asarray(index).astype("datetime64[s]") if is_time else None


def _names(names: tuple[str, ...] | None, n: int) -> tuple[str, ...]:
    """The names of known columns as a run can have them: settings join them by commas."""
    taken = {TIME, TARGET}
    plain = (
        names is not None
        and len(set(names)) == n
        and all(name.strip() and "," not in name and not name.isdecimal() and name not in taken for name in names)
    )
    return tuple(names or ()) if plain else tuple(f"x{number}" for number in range(n))
