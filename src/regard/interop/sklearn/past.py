"""Past: a series as far as it is known, with the time of each value and what is known ahead of each step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from regard.data.grid import further, grid_step, stamp, written
from regard.errors import nearest
from regard.interop.sklearn.refusal import BadData, BadSetting, refused

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
    """A series up to now.

    times   (n,) datetime64[s], a step apart. dated: whether they are the series' own.
    values  (n,).
    known   (n, K), what was known ahead of each step, and the names of its columns.
    """

    times: np.ndarray
    values: np.ndarray
    known: np.ndarray
    names: tuple[str, ...]
    step: np.timedelta64
    dated: bool

    def __len__(self) -> int:
        return len(self.values)

    def columns(self, ahead: np.ndarray | None = None) -> Mapping[str, Sequence[Any]]:
        """The columns of a table; of the rows to come, where what is known of them is given, the target is empty."""
        n = 0 if ahead is None else len(ahead)
        times = np.concatenate([self.times, further(self.times, self.step, n)])
        known = self.known if ahead is None else np.concatenate([self.known, ahead])
        columns: dict[str, Sequence[Any]] = {
            TIME: written(times, self.step),
            TARGET: [*self.values.tolist(), *[None] * n],
        }
        return columns | {name: known[:, place].tolist() for place, name in enumerate(self.names)}

    def last(self, n: int) -> Past:
        return replace(self, times=self.times[-n:], values=self.values[-n:], known=self.known[-n:])

    def followed_by(self, X: Any, y: Any) -> Past:
        """The past with the values that came after it."""
        values = values_of(y)
        self._require_next(y, len(values))
        known = self.known_of(X, len(values))
        return replace(
            self,
            times=np.concatenate([self.times, further(self.times, self.step, len(values))]),
            values=np.concatenate([self.values, values]),
            known=np.concatenate([self.known, known]),
        )

    def known_of(self, X: Any, n: int) -> np.ndarray:
        """What is known of the n steps to come, (n, K), its columns in the order in which they were learnt."""
        if X is None and not self.names:
            return np.zeros((n, 0))
        found, names = numbers_of(X)
        if found.shape[1] != len(self.names):
            told = f" ({', '.join(self.names)})" if self.names else ""
            raise BadData(f"X has {found.shape[1]} features, but it was fitted with {len(self.names)}{told}")
        if len(found) != n:
            raise BadData(f"found inconsistent numbers of samples: {len(found)} rows in X and {n} values in y")
        self._require_next(X, n)
        if names is None or self.names == _numbered(len(self.names)):
            return found
        if set(names) != set(self.names):
            raise BadData(f"X has the columns {', '.join(names)}, but it was fitted with {', '.join(self.names)}")
        return found[:, [names.index(own) for own in self.names]]

    def _require_next(self, data: Any, n: int) -> None:
        """Refuse what is indexed by other times than those that come next."""
        own, wanted = times_of(data), further(self.times, self.step, n)
        if self.dated and own is not None and not np.array_equal(own, wanted):
            at = int(np.argmax(own != wanted)) if len(own) == n else 0
            raise BadData(f"the series goes on at {stamp(wanted, at)}, and what is given has {stamp(own, at)} there")


def past_of(X: Any, y: Any, step: str) -> Past:
    """A series with what is known ahead of it. step: how far values are apart that have no times of their own."""
    values = values_of(y)
    if len(values) < 2:
        raise BadData("y has 1 sample, and a series has two values at least")
    known, names = (np.zeros((len(values), 0)), None) if X is None else numbers_of(X)
    if len(known) != len(values):
        raise BadData(f"found inconsistent numbers of samples: {len(known)} rows in X and {len(values)} values in y")
    own = times_of(y) if times_of(y) is not None else times_of(X)
    times = made_up(len(values), step_named(step)) if own is None else own
    with refused():
        apart = grid_step(times, "y")
    return Past(times, values, known, _names(names, known.shape[1]), apart, own is not None)


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
    if np.isnan(values[-1]):
        raise BadData("y ends with a missing value (nan); cut it off, for what comes after y is forecast")
    return values


def numbers_of(X: Any) -> tuple[np.ndarray, tuple[str, ...] | None]:
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


def times_of(data: Any) -> np.ndarray | None:
    """The times by which a Series or a frame is indexed; None where it has none.

    Those of a time zone are turned into UTC; of days, which summer time makes longer and shorter, the dates are kept.
    """
    index: Any = getattr(data, "index", None)
    if hasattr(index, "to_timestamp"):  # of periods
        index = index.to_timestamp()
    if getattr(index, "tz", None) is not None:
        local = index.tz_localize(None)
        index = local if (local == local.normalize()).all() else index.tz_convert(None)
    kind = getattr(getattr(index, "dtype", None), "kind", "")
    return np.asarray(index).astype("datetime64[s]") if kind == "M" else None


def _names(names: tuple[str, ...] | None, n: int) -> tuple[str, ...]:
    """The names of known columns, or numbers where a run cannot have such: settings join them by commas."""
    if names is None or len(set(names)) < n or not all(map(_is_plain, names)):
        return _numbered(n)
    return names


def _is_plain(name: str) -> bool:
    return bool(name.strip()) and "," not in name and not name.isdecimal() and name not in (TIME, TARGET)


def _numbered(n: int) -> tuple[str, ...]:
    return tuple(f"x{number}" for number in range(n))
