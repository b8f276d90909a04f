"""Forecasts that are fitted at once: the naive one, LEAR and DLinear, against loops and by their own claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, Nobody
from regard.core.inputs import PastKnown
from regard.core.model import logits_of
from regard.core.registry import entry
from regard.data.rows import SeriesRows
from regard.data.series import calendar
from regard.errors import CheckpointError, DataError, UsageError
from regard.fitting.windows import Seasons, example_windows, seasons_of
from regard.models.dlinear import DlinearConfig
from regard.models.lear import LearConfig
from regard.models.naive import NaiveConfig
from regard.storage import manifest, tensors

HISTORY, HORIZON, KNOWN = 168, 24, 10
START = np.datetime64("2024-01-01T00:00:00", "s")  # a Monday
CONFIGS = [
    NaiveConfig(KNOWN, HISTORY, HORIZON),
    LearConfig(KNOWN, HISTORY, HORIZON, penalty="lasso", level=7),
    DlinearConfig(KNOWN, HISTORY, HORIZON),
]


class Given:
    """The data of a fit."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows


class Told(Nobody):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def hours(days: int = 60, history: int = HISTORY, horizon: int = HORIZON) -> SeriesRows:
    n = 24 * days
    times = START + np.arange(n) * np.timedelta64(3600, "s")
    chance = np.random.default_rng(0)
    known = np.concatenate([chance.standard_normal((n, 2)), calendar(times)], 1)
    values = 0.5 * np.sin(np.arange(n) * np.pi / 12) + 0.8 * known[:, 0] + 0.1 * chance.standard_normal(n)
    origins = np.arange(history, n - horizon + 1)
    origins = origins[origins % horizon == 0]
    return SeriesRows(values, known, origins, history, horizon)


def fitted(config: Any, rows: Any, tell: Any = None) -> Any:
    model = config.build()
    model.fit(Given(rows), FitSettings(), tell or Nobody())
    return model


def forecast(model: Any, rows: SeriesRows, numbers: np.ndarray) -> np.ndarray:
    """The middle quantile, (n, H)."""
    batch = rows.batch_of(numbers, numbers)
    assert batch.source is not None
    found = logits_of(model.double(), PastKnown(batch.source, batch.tokens)).numpy()
    return found[..., model.config.quantiles.index(0.5)]


@pytest.mark.parametrize(
    ("step", "expected"), [(3600, (24, 168)), (900, (96, 672)), (86_400, (1, 7)), (604_800, (1, 1))]
)
def test_days_and_weeks_are_told_from_the_step(step: int, expected: tuple[int, int]):
    times = START + np.arange(3) * np.timedelta64(step, "s")
    assert seasons_of(calendar(times)) == Seasons(*expected)


def test_the_naive_forecast_is_that_of_the_epf():
    rows = hours()
    found = forecast(fitted(CONFIGS[0], rows), rows, np.arange(14))
    for told, origin in zip(found, rows.origins[:14].tolist(), strict=True):
        weekday = origin // 24 % 7
        lag = 168 if weekday in (0, 5, 6) else 24
        assert told == pytest.approx(rows.values[origin - lag : origin - lag + 24], rel=1e-5, abs=1e-6)


def test_a_season_may_be_named_and_a_longer_horizon_repeats_it():
    rows = hours(horizon=48)
    model = fitted(NaiveConfig(KNOWN, HISTORY, 48, season=36), rows)
    origin = int(rows.origins[0])
    last = rows.values[origin - 36 : origin]
    assert forecast(model, rows, np.arange(1))[0] == pytest.approx(
        np.concatenate([last, last[:12]]), rel=1e-5, abs=1e-6
    )
    with pytest.raises(UsageError, match=r"season must lie in 0 \.\. 168"):
        NaiveConfig(KNOWN, HISTORY, 24, season=200)


def test_a_short_history_makes_the_naive_forecast_shorter_and_says_so():
    told = Told()
    model = fitted(NaiveConfig(KNOWN, 12, 24), hours(history=12), told)
    assert model.seasons.tolist() == [1, 1]
    assert any("the last value is repeated" in note for note in told.notes)


def test_lear_sees_whole_days_before_and_what_is_known_ahead():
    rows = hours()
    model = fitted(LearConfig(KNOWN, HISTORY, HORIZON, penalty="ridge", asinh=False), rows)
    batch = rows.batch_of(np.array([5]), np.array([5]))
    assert batch.source is not None
    found = model.columns(*model.stretched(PastKnown(batch.source, batch.tokens)))[0].numpy()
    origin, expected = int(rows.origins[5]), list[float]()
    for lag in (1, 2, 3, 7):
        expected += [rows.values[origin - 24 * lag + i] for i in range(24)]
    for days in (0, 1, 7):
        for column in range(2):
            expected += [rows.known[origin - 24 * days + i, column] for i in range(24)]
    expected += [float(origin // 24 % 7 == day) for day in range(7)]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert len(found) == model.n_columns == 4 * 24 + 3 * 2 * 24 + 7
    groups = model.lag_weights(["wind", "load"])
    assert [group.name for group, _ in groups][4:6] == ["wind, ahead", "load, ahead"]
    assert sum(part.shape[1] for _, part in groups) == model.n_columns


def test_lear_sees_past_columns_of_days_before_and_what_a_series_is():
    known, chance = 1 + 2 + 8, np.random.default_rng(1)
    rows = hours()
    calendar_of = rows.known[:, 2:]
    measured, still = rows.known[:, :1], np.broadcast_to([0.25, -0.5], (len(rows.values), 2))
    past = chance.standard_normal((len(rows.values), 2))
    rows = SeriesRows(
        rows.values, np.concatenate([measured, still, calendar_of], 1), rows.origins, HISTORY, HORIZON, past
    )
    config = LearConfig(known, HISTORY, HORIZON, penalty="ridge", asinh=False, n_past=2, n_static=2)
    model = fitted(config, rows)
    batch = rows.batch_of(np.array([5]), np.array([5]))
    assert batch.source is not None
    found = model.columns(*model.stretched(PastKnown(batch.source, batch.tokens)))[0].numpy()
    origin, expected = int(rows.origins[5]), list[float]()
    for lag in (1, 2, 3, 7):
        expected += rows.values[origin - 24 * lag : origin - 24 * lag + 24].tolist()
    expected += measured[origin : origin + 24, 0].tolist()
    for days in (1, 7):
        part = slice(origin - 24 * days, origin - 24 * days + 24)
        expected += [*measured[part, 0], *past[part, 0], *past[part, 1]]
    expected += [0.25, -0.5, *(float(origin // 24 % 7 == day) for day in range(7))]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    groups = [group.name for group, _ in model.lag_weights(["load", "oil", "steam", "area", "region"])]
    assert groups[4:] == [
        "load, ahead",
        *(f"{name}, {ago}" for ago in ("a season ago", "7 seasons ago") for name in ("load", "oil", "steam")),
        *("series", "weekday"),
    ]


@pytest.mark.parametrize(
    ("season", "week", "history", "expected"),
    [(24, 168, 168, [24, 168]), (24, 168, 48, [24, 24]), (7, 0, 49, [7, 7]), (12, 0, 36, [12, 12]), (12, 0, 6, [1, 1])],
)
def test_the_naive_forecast_goes_back_a_season(season: int, week: int, history: int, expected: list[int]):
    spec = DataSpec(n_known=KNOWN, horizon=HORIZON, history=history, season=season, week=week)
    assert fitted(entry("naive").config(spec, "small"), hours(history=history)).seasons.tolist() == expected


def test_lear_finds_that_a_value_follows_what_is_known_ahead():
    rows = hours(days=120)
    model = fitted(LearConfig(KNOWN, HISTORY, HORIZON, penalty="lasso", asinh=False), rows)
    groups = {group.name: part for group, part in model.lag_weights(["first", "second"])}
    assert np.diagonal(groups["first, ahead"]) == pytest.approx(0.8, abs=0.15)
    assert np.abs(groups["second, ahead"]).max() < 0.1
    error = np.abs(forecast(model, rows, np.arange(len(rows.origins))) - _came(rows)).mean()
    assert error < 0.12  # the noise has 0.08


def test_dlinear_takes_the_past_apart_as_the_paper_does():
    rows = hours(history=48)
    model = fitted(DlinearConfig(KNOWN, 48, HORIZON, kernel=5, asinh=False), rows)
    past = torch.from_numpy(rows.values[:48])[None, :, None]
    average, rest = model.columns(past, torch.zeros(1, 24, KNOWN)).split(48, 1)
    values = rows.values[:48]
    expected = [np.mean([values[min(max(t + k, 0), 47)] for k in range(-2, 3)]) for t in range(48)]
    assert average[0].numpy() == pytest.approx(expected)
    assert (average + rest)[0].numpy() == pytest.approx(values)


def test_several_windows_are_averaged():
    rows = hours()
    one, two, both = (
        fitted(LearConfig(KNOWN, HISTORY, HORIZON, penalty="ridge", windows=windows), rows)
        for windows in ((0,), (20,), (0, 20))
    )
    assert torch.allclose(both.weights, (one.weights + two.weights) / 2)
    assert torch.equal(both.errors, one.errors)
    longer = fitted(LearConfig(KNOWN, HISTORY, HORIZON, penalty="ridge", windows=(0, 9999)), rows)
    assert torch.equal(longer.weights, one.weights)


@pytest.mark.parametrize("config", CONFIGS[1:])
def test_the_quantiles_hold_for_days_that_were_not_seen(config: Any):
    rows = hours(days=260)
    seen = SeriesRows(rows.values, rows.known, rows.origins[:150], HISTORY, HORIZON)
    model = fitted(config, seen)
    numbers = np.arange(150, len(rows.origins))
    batch = rows.batch_of(numbers, numbers)
    assert batch.source is not None
    found = logits_of(model, PastKnown(batch.source, batch.tokens))
    assert bool((found.diff(dim=-1) >= 0).all())
    below = (batch.targets[..., None] <= found).double().mean((0, 1))
    assert below.numpy() == pytest.approx(np.array(config.quantiles), abs=0.06)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_series_that_never_changes_is_forecast_as_it_is(config: Any):
    rows = hours()
    still = SeriesRows(np.full_like(rows.values, 2.0), np.zeros_like(rows.known), rows.origins, HISTORY, HORIZON)
    assert forecast(fitted(config, still), still, np.arange(3)) == pytest.approx(np.full((3, 24), 2.0))


def test_lags_behind_the_history_are_left_out_and_told_of():
    told, config = Told(), LearConfig(KNOWN, 48, HORIZON, penalty="ridge")
    model = fitted(config, hours(history=48), told)
    assert told.notes == ["lags 3, 7 of 24 steps reach behind data.history 48 and are left out"]
    assert (model.lags, model.known_lags, model.n_columns) == ((1, 2), (1,), 24 * 2 + 2 * (24 + 24) + 7)
    assert sum(len(group.columns) for group in model.groups(["wind", "sun"])) == model.n_columns
    with pytest.raises(DataError, match=r"72 steps back and data\.history is 48: .* lags of at most 2"):
        fitted(LearConfig(KNOWN, 48, HORIZON, lags=(3,)), hours(history=48))


def test_a_day_that_is_longer_than_the_history_is_the_history():
    told, rows = Told(), hours(history=12, horizon=6)
    model = fitted(LearConfig(KNOWN, 12, 6, penalty="ridge", lags=(1,), known_lags=()), rows, told)
    assert told.notes == ["a day is 24 steps and data.history 12: those steps stand for a day"]
    assert forecast(model, rows, np.arange(3)).shape == (3, 6)


def test_too_many_columns_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("regard.models.linear_forecaster.MOST_COLUMNS", 100)
    with pytest.raises(DataError, match="336 columns are more than the 100"):
        fitted(CONFIGS[2], hours())


def test_the_same_series_gives_the_same_numbers():
    first, second = (fitted(CONFIGS[1], hours()).stored() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_where_memory_ends_the_oldest_windows_are_left_out():
    rows, told = hours(), Told()
    model = DlinearConfig(KNOWN, HISTORY, HORIZON).build()
    model.fit(Given(rows), FitSettings(memory=8 * 4 * (336 + 24) * 30), told)
    assert told.notes == [f"{len(rows.origins) - 30} of {len(rows.origins)} windows, the oldest, are left out: raise "
                          "train.memory to fit all"]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
def test_a_model_is_the_same_out_of_its_file_and_a_damaged_one_is_refused(config: Any, tmp_path: Path):
    rows = example_windows(HISTORY, HORIZON, KNOWN)
    model, path = fitted(config, rows), tmp_path / "model.safetensors"
    manifest.write_file(path, tensors.chunks(model.stored()))
    again = config.build()
    again.open_file(path)
    asked = PastKnown(rows.source, rows.tokens)
    assert torch.equal(logits_of(again, asked), logits_of(model, asked))
    for name, tensor in model.stored().items():
        path.unlink()
        manifest.write_file(path, tensors.chunks(model.stored() | {name: torch.cat([tensor, tensor])}))
        with pytest.raises(CheckpointError, match="not the file of such a"):
            config.build().open_file(path)


def test_settings_out_of_range_are_refused():
    spec = example_windows(HISTORY, HORIZON, KNOWN)
    for name, value, told in (
        ("lags", [0], "lags are seasons back"),
        ("lags", [1, 1], "twice"),
        ("season", 500, r"season must lie in 0 \.\. 168"),
        ("strength", 2.0, "1 at most"),
        ("blocks", 1, "blocks"),
        ("level", -1, "level counts seasons"),
        ("windows", [], "windows"),
    ):
        with pytest.raises(UsageError, match=told):
            entry("lear").config(_spec(spec), "small", **{name: value})
    with pytest.raises(UsageError, match="odd"):
        entry("dlinear").config(_spec(spec), "small", kernel=4)


def _spec(rows: Any) -> Any:
    return DataSpec(n_channels=1 + KNOWN, n_known=KNOWN, horizon=rows.horizon, history=rows.history)


def _came(rows: SeriesRows) -> np.ndarray:
    return rows.values[rows.origins[:, None] + np.arange(rows.horizon)]
