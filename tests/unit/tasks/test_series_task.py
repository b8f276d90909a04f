"""Forecasting: windows, scales, what the forecaster begins as, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.core.model import logits_of
from regard.core.registry import entry
from regard.data.settings import DataSettings
from regard.data.worlds.electricity import ElectricityMarket
from regard.errors import DataError, UsageError
from regard.tasks.series import Moment, SeriesTask
from regard.training.losses import inputs_of, model_loss

WORLD = DataSettings(path="world:electricity?train=30&valid=4", task="series")
TASK = SeriesTask()


@pytest.fixture(scope="module")
def dataset():
    return TASK.prepare(WORLD, seed=0)


def forecaster(dataset, **settings):
    torch.manual_seed(0)
    return entry("forecaster").config(dataset.spec, "tiny", dropout=0.0, **settings).build().eval()


@pytest.mark.parametrize("settings", [{}, {"form": "decoder_only"}, {"encoder": "lstm", "patch": 1, "decoder": "lstm"}])
def test_before_training_the_forecast_is_the_mean_of_both_naive_ones(dataset, settings):
    model = forecaster(dataset, **settings)
    found = TASK.forecast(model, dataset.processor, dataset.examples)
    for moment, quantiles in zip(dataset.examples, found, strict=True):
        past = moment.series.target[: moment.origin]
        naive = (past[-24:] + past[-168:-144]) / 2
        bias = model.head.bias.detach().numpy()
        recent = dataset.processor.target.apply(past[-168:])
        spread = np.abs(recent - np.median(np.sort(recent)[:-1])).mean() + 0.05  # torch takes the lower median
        expected = naive[:, None] + np.sort(bias) * spread * dataset.processor.target.scale
        assert quantiles == pytest.approx(expected, rel=1e-4)


def test_many_moments_are_forecast_as_one_by_one(dataset):
    model = forecaster(dataset, encoder="gru", patch=1)
    together = TASK.forecast(model, dataset.processor, dataset.examples)
    alone = [TASK.forecast(model, dataset.processor, [moment])[0] for moment in dataset.examples]
    assert together == pytest.approx(np.stack(alone), rel=1e-5)


def test_training_never_sees_the_held_out_days(dataset):
    border = ElectricityMarket(train=30, valid=4).first_valid
    assert dataset.train.origins.max() + 24 <= border
    assert [moment.origin for moment in dataset.examples] == [border + 24 * day for day in range(4)]


def test_the_loss_is_the_pinball_loss(dataset):
    model = forecaster(dataset)
    batch = dataset.train.batch_of(np.arange(3), np.arange(3))
    loss, count, _ = model_loss(model, batch, None)
    with torch.no_grad():
        found = logits_of(model, inputs_of(batch))
    expected = sum(
        max(q * float(y - f), (q - 1) * float(y - f)) / 9
        for targets, forecasts in zip(batch.targets, found, strict=True)
        for y, row in zip(targets, forecasts, strict=True)
        for q, f in zip(model.config.quantiles, row, strict=True)
    )
    assert int(count) == 72
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_the_report_has_the_naive_errors_by_hand(dataset):
    scores = TASK.evaluate(forecaster(dataset), dataset.processor, dataset.examples).scores
    series, first = dataset.examples[0].series, dataset.examples[0].origin
    for name, season in (("daily", 24), ("weekly", 168)):
        errors = np.abs(series.target[first:] - series.target[first - season : -season])
        assert scores[f"{name}_naive_mae"] == pytest.approx(errors.mean())
    better = min(scores["daily_naive_mae"], scores["weekly_naive_mae"])
    assert scores["relative_mae"] == pytest.approx(scores["mae"] / better)


def test_a_processor_survives_its_file(dataset, tmp_path: Path):
    for name, content in dataset.processor.files().items():
        (tmp_path / name).write_bytes(content)
    again = TASK.load_processor(lambda name: tmp_path / name)
    assert again.hash == dataset.processor.hash


def test_other_columns_than_in_training_are_refused(dataset):
    series = dataset.examples[0].series
    other = replace(series, known=series.known[:, :1], columns=series.columns[:1])
    with pytest.raises(DataError, match="demand_forecast, wind_forecast"):
        TASK.forecast(forecaster(dataset), dataset.processor, [Moment(other, 200)])


@pytest.mark.parametrize("valid", ["hash:0.2", "other.csv", "tail:2"])
def test_what_is_held_out_of_a_series_is_its_end(valid: str, tmp_path: Path):
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(24 * 20) * np.timedelta64(3600, "s")
    path = tmp_path / "a.csv"
    path.write_text("time,price\n" + "".join(f"{time},{i % 24}\n" for i, time in enumerate(times)), encoding="utf-8")
    with pytest.raises(UsageError, match="the end is held out"):
        TASK.prepare(DataSettings(path=str(path), valid=valid), seed=0)


def test_lags_that_reach_behind_the_history_are_refused(dataset):
    spec = replace(dataset.spec, history=48)
    with pytest.raises(UsageError, match=r"168 steps back and data\.history is 48: .* lags of at most 2"):
        entry("forecaster").config(spec, "tiny")
    assert entry("forecaster").config(spec, "tiny", lags=[1, 2]).lags == (1, 2)
