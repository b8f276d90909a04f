"""The electricity market: its best forecast is the best, and its error is the one it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from regard.data.series import origins
from regard.data.worlds import from_spec, world
from regard.data.worlds.electricity import PERSISTENCE, SHOCK, ElectricityMarket, autoregression, merit
from regard.errors import UsageError


@pytest.fixture(scope="module")
def market() -> ElectricityMarket:
    return ElectricityMarket(train=20, valid=3000)


def errors(market: ElectricityMarket) -> np.ndarray:
    """(days, 24) what the best forecasts miss the validation prices by."""
    days = origins(market.series, market.first_valid, 24, 24)
    assert len(days) == market.valid
    return np.stack([market.series.target[day : day + 24] - market.optimal_forecast(day) for day in days])


def test_the_market_is_an_even_grid_of_hours_and_a_function_of_its_seed():
    small, large = world("electricity", train=20, valid=5), world("electricity", train=30, valid=9)
    assert len(small.series) == 25 * 24
    assert len({*np.diff(small.series.times)}) == 1
    np.testing.assert_array_equal(small.series.target, large.series.target[: 25 * 24])
    np.testing.assert_array_equal(small.series.known, large.series.known[: 25 * 24])
    other = world("electricity", train=20, valid=5, seed=1)
    assert not np.isclose(other.series.target, small.series.target).any()
    assert from_spec(small.spec) == small
    assert (small.task, small.series.columns) == ("series", ("demand_forecast", "wind_forecast"))


def test_the_best_error_is_reached_by_the_best_forecast(market):
    missed = errors(market)
    by_hour = np.abs(missed).mean(axis=0)
    # Errors of different days are almost independent: 3,000 of them leave 2 % of chance.
    assert np.abs(missed).mean() == pytest.approx(market.best["mae"], rel=0.04)
    assert np.sqrt((missed**2).mean()) == pytest.approx(market.best["rmse"], rel=0.04)
    assert by_hour[0] == pytest.approx(SHOCK * np.sqrt(2 / np.pi), rel=0.05)
    assert by_hour[-1] == pytest.approx(SHOCK / np.sqrt(1 - PERSISTENCE**2) * np.sqrt(2 / np.pi), rel=0.05)


def test_errors_of_the_best_forecast_are_told_by_nothing_known(market):
    """Uncorrelated with demand, wind, the last price and the forecast itself: no line through any would help."""
    series, missed = market.series, errors(market)
    days = np.arange(market.first_valid, len(series), 24)
    forecast = np.stack([market.optimal_forecast(day) for day in days])
    known = series.known[market.first_valid :].reshape(-1, 24, 2)
    for hint in (known[:, :, 0], known[:, :, 1], series.target[days - 1][:, None].repeat(24, axis=1), forecast):
        for hour in (0, 8, 23):
            # 3,000 pairs: a correlation of chance has a deviation of 0.018.
            assert abs(np.corrcoef(hint[:, hour], missed[:, hour])[0, 1]) < 0.075


def test_every_other_forecast_is_worse(market):
    price, first = market.series.target, market.first_valid
    best = np.abs(errors(market)).mean()
    for days in (1, 7):
        naive = np.abs(price[first:] - price[first - 24 * days : -24 * days]).mean()
        assert naive > 2 * best
    missed = errors(market)
    for shift in (-1.0, 1.0):
        assert np.abs(missed + shift).mean() > best
    last = np.array([price[day - 1] for day in range(first, len(price), 24)])
    residue = missed + 0.2 * (last - np.median(last))[:, None]
    assert np.abs(residue).mean() > best


def test_the_forecast_looks_at_no_price_from_its_origin_on():
    market, changed = ElectricityMarket(train=20, valid=1), ElectricityMarket(train=20, valid=1)
    prices = market.series.target.copy()
    prices[480:] += 100
    # Where the cached series is kept.
    vars(changed)["series"] = replace(market.series, target=prices)
    np.testing.assert_array_equal(changed.optimal_forecast(480), market.optimal_forecast(480))
    lifted = changed.optimal_forecast(481, 3) - market.optimal_forecast(481, 3)
    np.testing.assert_allclose(lifted, 100 * PERSISTENCE ** np.arange(1, 4))
    with pytest.raises(UsageError, match=r"an origin must lie in 1 \.\. 480"):
        market.optimal_forecast(481)


def test_noise_has_the_variance_and_memory_of_its_equation():
    noise = autoregression(PERSISTENCE, SHOCK, 100_000, 7)
    assert noise.std() == pytest.approx(SHOCK / np.sqrt(1 - PERSISTENCE**2), rel=0.03)
    shocks = noise[1:] - PERSISTENCE * noise[:-1]
    assert shocks.std() == pytest.approx(SHOCK, rel=0.01)
    assert abs(np.corrcoef(shocks[1:], shocks[:-1])[0, 1]) < 0.015


def test_merit_rises_and_bends_at_both_ends():
    slope = np.diff(merit(np.linspace(0.0, 80.0, 801))) / 0.1
    assert (slope > 0.5).all()
    assert slope[400] < 1.0 < 3.0 < min(slope[0], slope[-1])


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("world:electricity?train=13", "train of at least 14 days"),
        ("world:electricity?valid=0", "valid of at least 1"),
        ("world:electricity?days=3", "no setting 'days'"),
    ],
)
def test_markets_that_cannot_be_are_refused(address, words):
    with pytest.raises(UsageError, match=words):
        from_spec(address)
