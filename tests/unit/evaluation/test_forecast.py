from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DataError, NumericError, UsageError
from regard.evaluation import forecast

NUMBERS = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=30)


@given(NUMBERS)
def test_errors_by_loops(pairs: list[tuple[float, float]]) -> None:
    y, f = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    n = len(pairs)
    assert forecast.mae(y, f) == pytest.approx(math.fsum(abs(a - b) for a, b in pairs) / n)
    assert forecast.rmse(y, f) == pytest.approx(math.sqrt(math.fsum((a - b) ** 2 for a, b in pairs) / n))
    terms = [2 * abs(a - b) / (abs(a) + abs(b)) if a or b else 0 for a, b in pairs]
    assert forecast.smape(y, f) == pytest.approx(100 * math.fsum(terms) / n, abs=1e-9)
    assert 0 <= forecast.smape(y, f) <= 200 + 1e-9
    assert forecast.mae(y, f) <= forecast.rmse(y, f) * (1 + 1e-9) + 1e-100  # smaller squares are 0


def test_smape_by_hand() -> None:
    assert forecast.smape([100, 0, 50], [50, 0, -50]) == pytest.approx((100 * 2 / 3 + 0 + 200) / 3, rel=1e-12)


def test_mase_divides_by_the_seasonal_naive_error_of_the_training_series() -> None:
    training = [1.0, 5.0, 2.0, 7.0, 4.0, 9.0]
    assert forecast.seasonal_scale(training, 2) == pytest.approx((1 + 2 + 2 + 2) / 4)
    assert forecast.seasonal_scale(training) == pytest.approx((4 + 3 + 5 + 3 + 5) / 5)
    assert forecast.mase([10.0, 12.0], [9.0, 15.0], training, period=2) == pytest.approx(2 / 1.75)


def test_a_series_that_repeats_itself_has_errors_and_no_relative_ones() -> None:
    assert forecast.seasonal_scale([1, 2, 1, 2], 2) is None
    assert forecast.mase([1, 2], [2, 2], [1, 2, 1, 2], 2) is None
    assert forecast.relative_mae([1], [2], [1]) is None
    some = forecast.forecast_report([[1.0, 2.0], [3.0, 4.0]], [[2.0, 2.0], [3.0, 8.0]], scale=[[np.nan], [0.5]])
    assert (some.mae, some.mase) == (1.25, 4.0)  # of the second row alone, which has a scale
    assert forecast.forecast_report([1.0], [2.0], scale=[np.nan]).to_dict().keys() == {"mae", "rmse", "smape", "points"}


def test_holes_of_the_training_series_are_left_out_of_the_scale() -> None:
    assert forecast.seasonal_scale([1.0, np.nan, 4.0, 6.0]) == 2.0


def test_the_seasonal_naive_forecast_has_a_mase_of_one_on_a_series_that_goes_on_as_before() -> None:
    x = np.arange(40.0) ** 2 % 7 + np.arange(40) * 0.5
    naive = np.concatenate([forecast.seasonal_naive(x[:t], 1, period=7) for t in range(7, 40)])
    assert forecast.mae(x[7:], naive) == pytest.approx(forecast.seasonal_scale(x, 7), rel=1e-12)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=12), st.integers(1, 30), st.data())
def test_seasonal_naive_takes_the_latest_known_value_whole_periods_ago(history, horizon, data) -> None:
    period = data.draw(st.integers(1, len(history)))
    found = forecast.seasonal_naive(history, horizon, period)
    for step in range(horizon):
        index = len(history) + step
        while index >= len(history):
            index -= period
        assert found[step] == history[index]


def test_pinball_by_hand_and_half_the_absolute_error_at_the_median() -> None:
    actual, forecasts = [10.0, 20.0], [[8.0, 11.0], [25.0, 19.0]]
    assert forecast.pinball(actual, forecasts, [0.1, 0.5]) == pytest.approx(
        [(0.1 * 2 + 0.9 * 5) / 2, (0.5 * 1 + 0.5 * 1) / 2]
    )
    y, f = np.random.default_rng(0).normal(size=(2, 3, 4))
    assert forecast.pinball(y, f[..., None], [0.5]) == pytest.approx([forecast.mae(y, f) / 2])


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.9])
def test_the_quantile_of_a_sample_has_the_smallest_pinball_loss(q: float) -> None:
    y = np.random.default_rng(1).gamma(2.0, size=201)
    grid = np.linspace(0, y.max(), 2001)
    losses = [forecast.pinball(y, np.full((201, 1), value), [q])[0] for value in grid]
    assert grid[int(np.argmin(losses))] == pytest.approx(np.quantile(y, q), abs=2 * grid[1])


def test_coverage_counts_the_ends() -> None:
    assert forecast.coverage([1, 2, 3, 4], [1, 3, 2, 0], [1, 4, 3, 3]) == 0.5


def test_the_report_has_what_was_asked_for_in_plain_keys() -> None:
    chance = np.random.default_rng(0)
    y, quantiles = chance.normal(size=(500, 24)), (0.1, 0.5, 0.9)
    # The quantiles of the standard normal distribution, so that eight in ten values lie between the outer two.
    spread = np.broadcast_to([-1.2815515655446004, 0.0, 1.2815515655446004], (500, 24, 3))
    plain = forecast.forecast_report(y, spread[..., 1])
    assert list(plain.to_dict()) == ["mae", "rmse", "smape", "points"]
    assert plain.points == 12_000
    assert plain.mae == pytest.approx(math.sqrt(2 / math.pi), rel=0.03)
    assert plain.rmse == pytest.approx(1, rel=0.03)
    full = forecast.forecast_report(
        y, spread[..., 1], scale=2.0, naive=y + 4.0, quantiles=quantiles, quantile_forecasts=spread
    )
    assert full.mase == plain.mae / 2
    assert full.relative_mae == pytest.approx(plain.mae / 4)
    assert full.coverage is not None
    assert list(full.coverage) == ["0.8"]
    assert full.coverage["0.8"] == pytest.approx(0.8, abs=0.02)
    assert full.pinball_by_quantile is not None
    assert list(full.pinball_by_quantile) == ["0.1", "0.5", "0.9"]
    assert full.pinball == pytest.approx(sum(full.pinball_by_quantile.values()) / 3)
    # The expected pinball loss of the true q-quantile of a standard normal is its density there.
    densities = [math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) for z in spread[0, 0]]
    assert list(full.pinball_by_quantile.values()) == pytest.approx(densities, rel=0.04)
    assert json.loads(json.dumps(full.to_dict())) == full.to_dict()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: forecast.mae([], []), "no forecast to score"),
        (lambda: forecast.mae([1, 2], [1]), r"forecasts of shape \(1,\) for values of shape \(2,\)"),
        (lambda: forecast.rmse([math.nan], [1]), "values to forecast are not all numbers"),
        (lambda: forecast.seasonal_scale([1, 2], 2), "2 values are too few for differences over a period of 2"),
        (lambda: forecast.seasonal_naive([1, math.nan], 2), "not numbers"),
        (lambda: forecast.seasonal_naive([1], 2, period=3), "1 values are too few to repeat a period of 3"),
        (lambda: forecast.seasonal_naive([[1.0]], 2), "one axis"),
        (lambda: forecast.pinball([1], [[1, 2]], [0.5]), "forecasts of shape"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, message) -> None:
    with pytest.raises(DataError, match=message):
        call()


def test_forecasts_that_are_not_numbers_and_impossible_settings_are_refused() -> None:
    with pytest.raises(NumericError, match="not all finite"):
        forecast.mae([1], [math.inf])
    with pytest.raises(UsageError, match="quantiles must lie between 0 and 1"):
        forecast.pinball([1], [[1]], [1.0])
    with pytest.raises(UsageError, match="period must be at least 1"):
        forecast.seasonal_naive([1], 2, period=0)
    with pytest.raises(UsageError, match="horizon must be at least 1"):
        forecast.seasonal_naive([1], 0)
