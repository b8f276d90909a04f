"""How forecasts are judged, over all series and for each, and how they are written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.data.grid import cycles, written
from regard.evaluation.each import EachScore
from regard.evaluation.forecast import forecast_report, seasonal_naive
from regard.tasks.forecast import Forecast
from regard.tasks.moment import Moment, by_series
from regard.tasks.series_processor import SeriesProcessor
from regard.tasks.verbs import Answer, Report


def report(
    quantiles: tuple[float, ...], processor: SeriesProcessor, examples: Sequence[Moment], found: np.ndarray
) -> Report:
    """The scores of forecasts (n, H, Q), those of several series over all their values and by series."""
    actual = np.stack([one.series.target[one.origin : one.origin + processor.horizon] for one in examples])
    scores = _scores(quantiles, processor, examples, actual, found)
    by_quantile = scores.pop("pinball_by_quantile", None) or {}
    errors = np.abs(actual - found[..., quantiles.index(0.5)])
    tables: dict[str, list[dict[str, Any]]] = {
        "by_quantile": [{"quantile": str(name), "pinball": value} for name, value in by_quantile.items()],
        "by_step": [{"step": str(h + 1), "mae": float(errors[:, h].mean())} for h in range(processor.horizon)],
    }
    if processor.roles.series is not None:
        tables = {"by_series": _by_series(quantiles, processor, examples, actual, found)} | tables
    return Report(scores, tables, each=lambda: EachScore.mean_of(errors.mean(-1)))


def naive_periods(processor: SeriesProcessor, examples: Sequence[Moment]) -> dict[str, int]:
    """The steps after which naive forecasts repeat, by name, where the past of every example reaches so far."""
    told = cycles(examples[0].series.step)
    if processor.season not in told.values():
        told = {"seasonal": processor.season, "last": 1}
    least = min(one.origin for one in examples)
    return {name: period for name, period in told.items() if 1 <= period <= least}


def answer_of(
    moments: Sequence[Moment], found: Sequence[np.ndarray] | np.ndarray, quantiles: tuple[float, ...], by: str | None
) -> Answer:
    """Forecasts (H, Q) as a CSV, and as columns for a program. by: the name of the column that tells series apart."""
    asked = [values[: moment.asked or len(values)] for moment, values in zip(moments, found, strict=True)]
    times = [
        written(one.series.times[one.origin : one.origin + len(values)], one.series.step)
        for one, values in zip(moments, asked, strict=True)
    ]
    columns: dict[str, list[Any]] = {}
    if by is not None:
        columns[by] = [one.series.label for one, values in zip(moments, asked, strict=True) for _ in values]
    columns["time"] = [time for some in times for time in some]
    together = np.concatenate(asked)
    named = {f"q{quantile:g}": together[:, place].tolist() for place, quantile in enumerate(quantiles)}
    lines = [",".join([*columns, *named])]
    for number, row in enumerate(together):
        lines.append(
            ",".join([*(_cell(cells[number]) for cells in columns.values()), *(f"{value:.4f}" for value in row)])
        )
    details = columns | {"forecast": together[:, quantiles.index(0.5)].tolist()} | named
    when = [one.series.times[one.origin : one.origin + len(values)] for one, values in zip(moments, asked, strict=True)]
    labels = None if by is None else np.array(columns[by])
    return Answer("\n".join(lines), details, Forecast(np.concatenate(when), together, quantiles, labels, by))


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    """An answer as the rows of a table: a time and a column for each quantile, with as many digits as models have."""
    columns = {name: cells for name, cells in answer.details.items() if name != "forecast"}
    return [dict(zip(columns, map(_seven_digits, row), strict=True)) for row in zip(*columns.values(), strict=True)]


def _seven_digits(value: Any) -> Any:
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _cell(text: str) -> str:
    """A word as a cell of a CSV."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def _scores(
    quantiles: tuple[float, ...],
    processor: SeriesProcessor,
    examples: Sequence[Moment],
    actual: np.ndarray,
    found: np.ndarray,
) -> dict[str, Any]:
    scales = [processor.of(one.series).naive for one in examples]
    scores = forecast_report(
        actual,
        found[..., quantiles.index(0.5)],
        scale=np.array([np.nan if scale is None else scale for scale in scales])[:, None],
        quantiles=quantiles,
        quantile_forecasts=found,
    ).to_dict()
    for name, period in naive_periods(processor, examples).items():
        told = _naive(examples, processor.horizon, period)
        errors = np.abs(actual - told)
        # Of a hole in the season before there is no naive forecast.
        if np.isfinite(errors).any():
            scores[f"{name}_naive_mae"] = float(errors[np.isfinite(errors)].mean())
    best = min((value for name, value in scores.items() if name.endswith("_naive_mae")), default=0.0)
    if best:
        scores["relative_mae"] = scores["mae"] / best
    return scores


def _by_series(
    quantiles: tuple[float, ...],
    processor: SeriesProcessor,
    examples: Sequence[Moment],
    actual: np.ndarray,
    found: np.ndarray,
) -> list[dict[str, Any]]:
    rows = []
    for series, numbers in by_series(examples):
        some = [examples[number] for number in numbers]
        scores = _scores(quantiles, processor, some, actual[numbers], found[numbers])
        shown = ("mae", "rmse", "mase", "relative_mae", "pinball")
        told = {name: value for name, value in scores.items() if name in shown or name.endswith("_naive_mae")}
        rows.append({"series": series.label, "horizons": len(numbers)} | told)
    return rows


def _naive(moments: Sequence[Moment], horizon: int, period: int) -> np.ndarray:
    """The last period of each past, repeated; NaN where it has holes."""
    found = []
    for one in moments:
        season = one.series.target[one.origin - period : one.origin]
        found.append(np.resize(season, horizon) if one.series.is_sparse else seasonal_naive(season, horizon, period))
    return np.stack(found)
