"""Forecasts against what came, point by point or by quantiles.

    MAE      mean |y - f|
    RMSE     sqrt(mean (y - f)^2)
    sMAPE    100 mean 2 |y - f| / (|y| + |f|), from 0 to 200, and 0 where both are 0     Makridakis et al. 2020 (M4)
    MASE     MAE / mean |x_t - x_(t-m)| over the training series                         Hyndman and Koehler 2006
    pinball  mean max(q (y - f), (q - 1) (y - f)); the q-quantile has the smallest       Koenker and Bassett 1978

Glossary
y  what came        f  forecast, of the same shape
x  training series  m  period, in steps
q  quantile, between 0 and 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regard.errors import DataError, NumericError, UsageError


@dataclass(frozen=True)
class ForecastReport:
    """Quality of forecasts, in plain keys.

    points        how many values were forecast.
    mase          where a scale was given, over the values that have one.
    relative_mae  MAE over that of a naive forecast, where one was given that has an error: below 1 is better.
    pinball       mean over the quantiles; pinball_by_quantile has each, by its name such as "0.1".
    coverage      share of the values inside the interval of two quantiles q and 1 - q, by its nominal share such as
                  "0.8".
    """

    mae: float
    rmse: float
    smape: float
    points: int
    mase: float | None = None
    relative_mae: float | None = None
    pinball: float | None = None
    pinball_by_quantile: dict[str, float] | None = None
    coverage: dict[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without what was not measured."""
        return {key: value for key, value in vars(self).items() if value is not None}


def forecast_report(
    actual: ArrayLike,
    forecast: ArrayLike,
    *,
    scale: ArrayLike | None = None,
    naive: ArrayLike | None = None,
    quantiles: Sequence[float] = (),
    quantile_forecasts: ArrayLike | None = None,
) -> ForecastReport:
    """The report on forecasts of any shape.

    scale               of MASE, see `seasonal_scale`: one, or one for each value, NaN for those that have none.
    naive               forecasts to compare with, see `seasonal_naive`.
    quantile_forecasts  of the shape of `actual` and one axis more, last, for the `quantiles`.
    """
    error = mae(actual, forecast)
    losses = None if quantile_forecasts is None else pinball(actual, quantile_forecasts, quantiles)
    return ForecastReport(
        mae=error,
        rmse=rmse(actual, forecast),
        smape=smape(actual, forecast),
        points=np.asarray(actual).size,
        mase=None if scale is None else _scaled_error(actual, forecast, scale),
        relative_mae=None if naive is None else relative_mae(actual, forecast, naive),
        pinball=None if losses is None else float(np.mean(losses)),
        pinball_by_quantile=None
        if losses is None
        else {f"{q:g}": loss for q, loss in zip(quantiles, losses, strict=True)},
        coverage=None if quantile_forecasts is None else _coverages(actual, quantile_forecasts, quantiles) or None,
    )


def mae(actual: ArrayLike, forecast: ArrayLike) -> float:
    """Mean absolute error."""
    y, f = _checked(actual, forecast)
    return float(np.abs(y - f).mean())


def rmse(actual: ArrayLike, forecast: ArrayLike) -> float:
    """Root of the mean squared error."""
    y, f = _checked(actual, forecast)
    return float(np.sqrt(np.square(y - f).mean()))


def smape(actual: ArrayLike, forecast: ArrayLike) -> float:
    """Symmetric mean absolute percentage error, from 0 to 200."""
    y, f = _checked(actual, forecast)
    size = np.abs(y) + np.abs(f)
    return float(100 * (2 * np.abs(y - f) / np.where(size == 0, 1, size)).mean())


def mase(actual: ArrayLike, forecast: ArrayLike, training: ArrayLike, period: int = 1) -> float | None:
    """Mean absolute error over that of the seasonal naive forecast one period ahead, inside the training series.

    None where that has no error.
    """
    scale = seasonal_scale(training, period)
    return None if scale is None else mae(actual, forecast) / scale


def seasonal_scale(training: ArrayLike, period: int = 1) -> float | None:
    """Mean |x_t - x_(t-m)| over the training series, which MASE divides by; holes are NaN, and left out.

    None of a series that repeats itself exactly, to which no error can be relative.
    """
    x = _axis(training, period)
    if len(x) <= period:
        raise DataError(f"{len(x)} values are too few for differences over a period of {period}; give more history")
    differences = x[period:] - x[:-period]
    np.abs(differences, out=differences)
    has_value = ~np.isnan(differences)
    differences = differences if has_value.all() else differences[has_value]
    return float(differences.mean()) or None if len(differences) else None


def seasonal_naive(history: ArrayLike, horizon: int, period: int = 1) -> np.ndarray:
    """The last period of the history, repeated over the horizon: f_(n+h) = x_(n+h-km), k the smallest that is known.

    >>> seasonal_naive([1, 2, 3, 4, 5], horizon=4, period=3).tolist()
    [3.0, 4.0, 5.0, 3.0]
    """
    x = _axis(history, period)
    if len(x) < period:
        raise DataError(f"{len(x)} values are too few to repeat a period of {period}; give more history")
    if horizon < 1:
        raise UsageError(f"horizon must be at least 1, found {horizon}")
    return np.resize(_series(x[len(x) - period :], period), horizon)


def relative_mae(actual: ArrayLike, forecast: ArrayLike, naive: ArrayLike) -> float | None:
    """MAE of a forecast over that of a naive one; None where that has no error."""
    reference = mae(actual, naive)
    return mae(actual, forecast) / reference if reference else None


def pinball(actual: ArrayLike, forecasts: ArrayLike, quantiles: Sequence[float]) -> list[float]:
    """The pinball loss of each quantile; its forecasts lie along the last axis."""
    y, f = _by_quantile(actual, forecasts, quantiles)
    q = np.asarray(quantiles, dtype=np.float64)
    losses = np.maximum(q * (y - f), (q - 1) * (y - f))
    return losses.reshape(-1, len(q)).mean(0).tolist()


def coverage(actual: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """The share of values inside their interval, its ends among it."""
    y, bottom = _checked(actual, low)
    y, top = _checked(actual, high)
    return float(((bottom <= y) & (y <= top)).mean())


def _scaled_error(actual: ArrayLike, forecast: ArrayLike, scale: ArrayLike) -> float | None:
    """Mean |y - f| / scale over the values that have a scale."""
    y, f = _checked(actual, forecast)
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), y.shape)
    has = np.isfinite(scales)
    return float((np.abs(y - f)[has] / scales[has]).mean()) if has.any() else None


def _coverages(actual: ArrayLike, forecasts: ArrayLike, quantiles: Sequence[float]) -> dict[str, float]:
    """Coverage of every interval between quantiles q < 1/2 and 1 - q, by its nominal share."""
    _, f = _by_quantile(actual, forecasts, quantiles)
    found = {}
    for low, q in enumerate(quantiles):
        for high, other in enumerate(quantiles):
            if q < 0.5 and abs(q + other - 1) < 1e-9:
                found[f"{other - q:g}"] = coverage(actual, f[..., low], f[..., high])
    return found


def _by_quantile(actual: ArrayLike, forecasts: ArrayLike, quantiles: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Values (..., Q) and forecasts (..., Q)."""
    if not quantiles or not all(0 < q < 1 for q in quantiles):
        raise UsageError(f"quantiles must lie between 0 and 1, found {list(quantiles)}")
    y = np.asarray(actual, dtype=np.float64)
    return _checked(np.broadcast_to(y[..., None], (*y.shape, len(quantiles))), forecasts)


def _checked(actual: ArrayLike, forecast: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    y, f = np.asarray(actual, dtype=np.float64), np.asarray(forecast, dtype=np.float64)
    if y.shape != f.shape:
        raise DataError(f"forecasts of shape {f.shape} for values of shape {y.shape}; each value needs one")
    if y.size == 0:
        raise DataError("there is no forecast to score: the series is empty")
    if not np.isfinite(y).all():
        raise DataError("the values to forecast are not all numbers; fill or leave out the gaps")
    if not np.isfinite(f).all():
        raise NumericError("the forecasts are not all finite numbers, so no error can be computed")
    return y, f


def _series(values: ArrayLike, period: int) -> np.ndarray:
    x = _axis(values, period)
    if not np.isfinite(x).all():
        raise DataError("the series has values that are not numbers; fill or leave out the gaps")
    return x


def _axis(values: ArrayLike, period: int) -> np.ndarray:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise DataError(f"a series has one axis, found shape {x.shape}")
    if period < 1:
        raise UsageError(f"period must be at least 1, found {period}")
    return x
