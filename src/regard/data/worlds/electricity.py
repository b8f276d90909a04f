"""An hourly electricity market whose price follows demand, wind and the calendar, with a known best forecast.

    price(t) = merit(demand(t) - wind(t)) + habit(hour, weekday) + noise(t)
    noise(t) = PERSISTENCE noise(t - 1) + e(t),    e(t) ~ N(0, SHOCK^2)

Demand and wind are known ahead; merit is the order in which plants are called, cheap ones first: steep where the last
plants run, and falling below zero where wind alone is too much. Given the past and what is known ahead, the price h
hours on is normal around its noiseless part + PERSISTENCE^h noise(now), with the variance SHOCK^2 (1 - PERSISTENCE^2h)
/ (1 - PERSISTENCE^2). That middle is the best forecast, and the mean absolute error of a normal is sqrt(2 / pi)
deviations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import ClassVar

import numpy as np

from regard.data.order import mixed
from regard.data.series import Series, calendar
from regard.data.worlds.base import Generated
from regard.errors import UsageError

HOURS = 24
# A Monday.
FIRST_HOUR = np.datetime64("2019-01-07T00:00:00", "s")
PERSISTENCE = 0.9
SHOCK = 2.0
# One week of history and one to learn from.
LEAST_DAYS = 14
# Streams of chance, one for each cause, so that the hours of a short market begin those of a long one.
DEMAND, WIND, NOISE = range(3)


@dataclass(frozen=True)
class ElectricityMarket(Generated):
    """`train` days and then `valid` days of a market, to be forecast a day ahead."""

    train: int = 730
    valid: int = 180

    name: ClassVar[str] = "electricity"
    task: ClassVar[str] = "series"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train < LEAST_DAYS:
            raise UsageError(f"world:{self.name} needs train of at least {LEAST_DAYS} days, found {self.train}")

    @property
    def first_valid(self) -> int:
        """The position of the first hour of the validation days."""
        return HOURS * self.train

    @cached_property
    def series(self) -> Series:
        """All hours, those of the validation days last."""
        n = HOURS * (self.train + self.valid)
        times = FIRST_HOUR + np.arange(n) * np.timedelta64(3600, "s")
        known = np.stack([self._demand(times), self._wind(n)], axis=1)
        price = expected_price(times, known) + autoregression(PERSISTENCE, SHOCK, n, mixed(self.seed, NOISE))
        columns = ("demand_forecast", "wind_forecast")
        return Series(times, price, known, columns, np.timedelta64(3600, "s"), "price", f"world:{self.name}")

    @property
    def best(self) -> dict[str, float]:
        """The expected errors of the best forecast of a day: no model's are lower in expectation."""
        return best_errors(HOURS)

    def optimal_forecast(self, origin: int, horizon: int = HOURS) -> np.ndarray:
        """(horizon,) the median price of each hour from `origin` on, given all before it and all known ahead."""
        series = self.series
        if not 1 <= origin <= len(series) - horizon:
            raise UsageError(f"an origin must lie in 1 .. {len(series) - horizon}, found {origin}")
        rows = slice(origin - 1, origin + horizon)
        expected = expected_price(series.times[rows], series.known[rows])
        noise = series.target[origin - 1] - expected[0]
        return expected[1:] + noise * PERSISTENCE ** np.arange(1, horizon + 1)

    def _demand(self, times: np.ndarray) -> np.ndarray:
        """Gigawatts: two humps a day, less on Saturdays and least on Sundays, most in winter, and the weather."""
        day_sin, day_cos, _, _, _, year_cos, weekend, sunday = calendar(times).T
        humps = -6.0 * day_cos - 2.5 * day_sin - 2.5 * (day_cos**2 - day_sin**2)
        weather = autoregression(0.99, 0.4, len(times), mixed(self.seed, DEMAND))
        return 52.0 + humps - 6.0 * weekend - 3.0 * sunday + 5.0 * year_cos + weather

    def _wind(self, n: int) -> np.ndarray:
        """Gigawatts between none and 30, mostly little, changing over days."""
        pressure = autoregression(0.97, 0.3, n, mixed(self.seed, WIND))
        return 30.0 / (1.0 + np.exp(1.0 - pressure))


def expected_price(times: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(n,) the price without its noise, from (n, 2) demand and wind."""
    day_sin, day_cos, _, _, _, _, weekend, _ = calendar(times).T
    habit = 2.0 * day_sin * day_cos - 1.5 * day_cos - 3.0 * weekend
    return merit(known[:, 0] - known[:, 1]) + habit


def merit(load: np.ndarray) -> np.ndarray:
    """The price at which that many gigawatts are offered: a line with a steep end above 52 and one below 24."""
    return 10.0 + 0.6 * load + 12.0 * np.logaddexp(0, (load - 52.0) / 4.0) - 10.0 * np.logaddexp(0, (24.0 - load) / 4.0)


def autoregression(persistence: float, shock: float, n: int, seed: int) -> np.ndarray:
    """(n,) steps of x(t) = persistence x(t - 1) + N(0, shock^2), begun in its stationary distribution."""
    random = Random(seed)
    values = np.empty(n)
    value = random.gauss(0.0, shock / (1 - persistence**2) ** 0.5)
    for i in range(n):
        values[i] = value
        value = persistence * value + random.gauss(0.0, shock)
    return values


def best_errors(horizon: int) -> dict[str, float]:
    """Exact mean absolute and root mean squared error of the best forecast, over the hours 1 .. horizon together."""
    steps = np.arange(1, horizon + 1)
    variances = SHOCK**2 * (1 - PERSISTENCE ** (2 * steps)) / (1 - PERSISTENCE**2)
    return {"mae": float(np.sqrt(2 / np.pi * variances).mean()), "rmse": float(np.sqrt(variances.mean()))}
