"""Forecasting: windows, scales, what the forecaster begins as, and what is refused."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.core.fitted import FitSettings, Nobody, Noted
from regard.core.inputs import PastKnown
from regard.core.model import logits_of
from regard.core.registry import entry
from regard.data.example import ExampleData
from regard.data.series import Panel, Roles
from regard.data.settings import DataSettings
from regard.data.worlds.electricity import ElectricityMarket
from regard.errors import DataError, UsageError
from regard.layers.quantile_head import QuantileHead
from regard.storage import arrays
from regard.tasks.series import Moment, SeriesTask
from regard.tasks.series_processor import SeriesProcessor
from regard.training.losses import inputs_of, model_loss

WORLD = DataSettings(path="world:electricity?train=30&valid=4", task="series")
TASK = SeriesTask()
# Of a file without a number here and there, and of one with two series, row by row in turns.
HOLED = {"target": "load", "known": "heat", "history": 12, "horizon": 4, "stride": 1}
TURNS = {"target": "load", "series": "shop", "static": "kind"}


@pytest.fixture(scope="module")
def dataset():
    return TASK.prepare(WORLD, seed=0)


@pytest.fixture(scope="module")
def long_past():
    """Four weeks are read of each."""
    return TASK.prepare(replace(WORLD, path="world:electricity?train=60&valid=4", history=672), seed=0)


def forecaster(dataset, **settings):
    torch.manual_seed(0)
    return entry("forecaster").config(dataset.spec, "tiny", dropout=0.0, **settings).build().eval()


def prepared(path: Path, **asked):
    return TASK.ready(DataSettings(path=str(path), task="series", test=0.3, **asked), 0)


@pytest.fixture
def in_files(monkeypatch):
    """Arrays of any size lie in files without a name, and are gone through a few numbers at a time."""

    def begin() -> None:
        for name, value in {"IN_MEMORY": 16, "WAITING": 1, "SLICE": 700}.items():
            monkeypatch.setattr(arrays, name, value)
        monkeypatch.setattr("regard.data.table.AT_ONCE", 37)
        monkeypatch.setattr("regard.data.series.AT_ONCE", 13)
        monkeypatch.setattr("regard.tasks.series_processor.AT_ONCE", 48)

    return begin


@pytest.fixture
def two_files(tmp_path):
    chance = np.random.default_rng(0)
    times = [str(time).replace("T", " ") for time in np.datetime64("2013-01-01T00:00:00") + np.arange(900) * 3600]
    holed, turns = ["time,load,heat,wind"], ["shop,time,load,heat,kind"]
    for row, time in enumerate(times):
        load, heat, wind = chance.normal(size=3).tolist()
        cells = [load, heat, "" if row % 61 == 7 else wind]
        holed += [] if row % 89 == 5 else [",".join(map(str, [time, *cells]))]
        turns += [f"{shop},{time},{load + shop},{heat},{'ab'[shop]}" for shop in (0, 1)]
    for name, lines in {"holed": holed, "turns": turns}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "asked"),
    [("turns", TURNS), *(("holed", {**HOLED, "gaps": gaps}) for gaps in ("interpolate", "forward", "skip"))],
)
def test_series_in_files_are_those_in_memory_bit_for_bit(name, asked, two_files, in_files):
    path = two_files / f"{name}.csv"
    plain = prepared(path, **asked)
    in_files()
    found = prepared(path, **asked)
    held = found.examples[0].series
    for array in (found.train.values, found.train.known, found.train.past, held.times, held.target):
        while array.base is not None and arrays.as_mapped(array) is None:
            array = array.base
        assert arrays.as_mapped(array) is not None
    assert (found.hash, found.processor.files()) == (plain.hash, plain.processor.files())
    assert (found.notes, found.account) == (plain.notes, plain.account)
    assert [(one.time, one.origin) for one in found.test] == [(one.time, one.origin) for one in plain.test]
    assert [one.digest for one in found.examples[:2]] == [one.digest for one in plain.examples[:2]]
    chosen = np.arange(len(found.train.sizes))
    sent = pickle.loads(pickle.dumps(found.train))
    with ThreadPoolExecutor(2) as threads:
        read = list(threads.map(lambda rows: rows.batch_of(chosen, chosen), [found.train, found.train, sent]))
    for batch in read:
        for part in ("source", "tokens", "targets"):
            assert torch.equal(getattr(batch, part), getattr(plain.train.batch_of(chosen, chosen), part))
    model = forecaster(found)
    assert (
        TASK.forecast(model, found.processor, found.test) == TASK.forecast(model, plain.processor, plain.test)
    ).all()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"form": "decoder_only", "linear": 0},
        {"encoder": "lstm", "patch": 1, "decoder": "lstm", "asinh": False},
    ],
)
def test_before_training_the_forecast_is_the_mean_of_both_naive_ones(dataset, settings):
    """In stretched units; the net begins with a bias for each quantile, the linear half with none."""
    model = forecaster(dataset, **settings)
    found = TASK.forecast(model, dataset.processor, dataset.examples)
    stretch, plain = (np.arcsinh, np.sinh) if settings.get("asinh", True) else (np.array, np.array)
    halves = [0.5, 0.5] if settings.get("linear", 7) else [1.0, 0.0]
    for moment, quantiles in zip(dataset.examples, found, strict=True):
        scaler = dataset.processor.of(moment.series).target
        past = scaler.apply(moment.series.target[: moment.origin])
        recent = past[-168:]
        level = np.sort(recent)[83]  # of an even number torch takes the lower median
        spread = np.abs(recent - level).mean() + 0.05
        z = (stretch((past[-24:] - level) / spread) + stretch((recent[:24] - level) / spread)) / 2
        net, linear = plain(z[:, None] + model.head.bias.detach().numpy()), plain(z[:, None])
        expected = np.sort((halves[0] * net + halves[1] * linear) * spread + level)
        assert quantiles == pytest.approx(scaler.invert(expected), rel=1e-4)


def test_a_market_that_moved_to_another_level_is_forecast_there(dataset):
    batch = dataset.train.batch_of(np.arange(3), np.arange(3))
    moved = batch.source.clone()
    moved[..., 0] += 7.0
    lear = entry("lear").config(dataset.spec, "tiny").build()
    lear.fit(ExampleData(dataset.train, ()), FitSettings(), Nobody())
    for model in (forecaster(dataset).double(), lear.double()):
        with torch.no_grad():
            here, there = (
                logits_of(model, PastKnown(past.double(), batch.tokens.double())) for past in (batch.source, moved)
            )
        assert torch.allclose(there, here + 7.0)


def test_the_half_that_is_solved_for_is_lear(dataset):
    data, model = ExampleData(dataset.train, ()), forecaster(dataset).double()
    lear = entry("lear").config(dataset.spec, "tiny").build()
    lear.fit(data, FitSettings(), Nobody())
    model.begin(data, FitSettings(), Nobody())
    batch = dataset.valid.batch_of(np.arange(3), np.arange(3))
    window = PastKnown(batch.source.double(), batch.tokens.double())
    alone = QuantileHead.told(model.head, model.days(window)[0] + model.head.misses, *model.days(window)[1:], None)
    assert torch.allclose(alone, logits_of(lear.double(), window), atol=1e-5)
    few = replace(dataset.train, origins=dataset.train.origins[:5])
    told = list[str]()
    model.begin(ExampleData(few, ()), FitSettings(), Noted(told.append))
    assert told == ["5 horizons are too few to solve for a linear forecast: give 20 at least"]


def test_a_past_that_is_long_enough_is_measured_by_a_week_and_by_a_month(long_past):
    """Before training each level gives the mean of both naive forecasts, and the answer is the mean over both."""
    model = forecaster(long_past)
    assert (model.config.level, model.config.linear, model.config.far) == (7, 7, 28)
    bias = model.head.bias.detach().numpy()
    found = TASK.forecast(model, long_past.processor, long_past.examples)
    for moment, quantiles in zip(long_past.examples, found, strict=True):
        scaler = long_past.processor.of(moment.series).target
        past, expected = scaler.apply(moment.series.target[: moment.origin]), 0.0
        for steps in (168, 672):
            level = np.sort(past[-steps:])[steps // 2 - 1]
            spread = np.abs(past[-steps:] - level).mean() + 0.05
            z = (np.arcsinh((past[-24:] - level) / spread) + np.arcsinh((past[-168:-144] - level) / spread)) / 2
            expected += (np.sinh(z[:, None] + bias) + np.sinh(z[:, None])) * spread / 4 + level / 2
        assert quantiles == pytest.approx(scaler.invert(np.sort(expected)), rel=1e-4)


def test_each_level_has_a_half_that_is_solved_for(long_past):
    data, model = ExampleData(long_past.train, ()), forecaster(long_past).double()
    model.begin(data, FitSettings(), Nobody())
    batch = long_past.valid.batch_of(np.arange(3), np.arange(3))
    window, expected = PastKnown(batch.source.double(), batch.tokens.double()), []
    for level in (7, 28):
        lear = entry("lear").config(long_past.spec, "tiny", level=level).build()
        lear.fit(data, FitSettings(), Nobody())
        expected.append(logits_of(lear.double(), window))
    with torch.no_grad():
        vectors = model(window)[0]
        net = QuantileHead.forward(model.head, vectors[..., :-6])
    assert not torch.allclose(expected[0], expected[1], atol=1e-2)
    assert torch.allclose(2 * logits_of(model, window) - net, (expected[0] + expected[1]) / 2, atol=1e-5)


def test_of_two_levels_the_loss_is_the_mean_over_both(long_past):
    model = forecaster(long_past)
    with torch.no_grad():
        model.head.misses.normal_()
        model.head.weight.normal_(std=0.1)
    batch = long_past.train.batch_of(np.arange(2), np.arange(2))
    loss, count, _ = model_loss(model, batch, None)
    with torch.no_grad():
        vectors = model(inputs_of(batch))[0].double().numpy()
    q, width = np.array(model.config.quantiles), model.config.d_model
    weight, bias = (one.detach().double().numpy() for one in (model.head.weight, model.head.bias))
    misses, expected = model.head.misses.double().numpy().reshape(24, 2, 9), 0.0
    for row, times in zip(vectors, batch.targets.numpy(), strict=True):
        for h, y in enumerate(times):
            nets, solved = row[h, : 2 * (width + 3)].reshape(2, -1), row[h, 2 * (width + 3) :].reshape(2, 3)
            told = [(weight @ net[:width] + bias + net[width], *net[width + 1 :]) for net in nets]
            told += [(one[0] + misses[h, n], *one[1:]) for n, one in enumerate(solved)]
            for z, level, spread in told:
                missed = np.arcsinh((y - level) / spread) - z
                expected += np.maximum(q * missed, (q - 1) * missed).mean() / 4
    assert int(count) == 48
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_while_it_learns_the_net_sees_each_past_by_one_of_its_levels(long_past):
    model = forecaster(long_past).train()
    batch = long_past.train.batch_of(np.arange(12), np.arange(12))
    width, seen = model.config.d_model, set[int]()
    with torch.no_grad():
        vectors = model(inputs_of(batch))[0].numpy()
    assert vectors.shape[-1] == width + 3 + 2 * 3
    for row, past in zip(vectors, batch.source[..., 0].numpy(), strict=True):
        middles = [np.sort(past[-steps:])[steps // 2 - 1] for steps in (168, 672)]
        spreads = [np.abs(past[-n:] - level).mean() + 0.05 for n, level in zip((168, 672), middles, strict=True)]
        which = int(np.argmin([abs(row[0, width + 1] - middle) for middle in middles]))
        assert row[0, width + 1 : width + 3] == pytest.approx([middles[which], spreads[which]], rel=1e-5)
        seen.add(which)
    assert seen == {0, 1}


@pytest.mark.parametrize(
    ("history", "settings", "expected"),
    [(168, {}, 0), (336, {}, 14), (672, {"far": 0}, 0), (672, {"level": 28}, 0), (1344, {}, 28)],
)
def test_the_second_level_reaches_as_far_as_the_past_and_farther_than_the_first(long_past, history, settings, expected):
    spec = replace(long_past.spec, history=history)
    assert entry("forecaster").config(spec, "tiny", **settings).far == expected


def test_many_moments_are_forecast_as_one_by_one(dataset):
    model = forecaster(dataset, encoder="gru", patch=1)
    together = TASK.forecast(model, dataset.processor, dataset.examples)
    alone = [TASK.forecast(model, dataset.processor, [moment])[0] for moment in dataset.examples]
    assert together == pytest.approx(np.stack(alone), rel=1e-5)


def test_training_never_sees_the_held_out_days(dataset):
    border = ElectricityMarket(train=30, valid=4).first_valid
    assert dataset.train.origins.max() + 24 <= border
    assert [moment.origin for moment in dataset.examples] == [border + 24 * day for day in range(4)]


def test_the_loss_is_the_mean_pinball_loss_of_both_halves_in_stretched_units(dataset):
    model = forecaster(dataset)
    with torch.no_grad():
        model.head.misses.normal_()
        model.days.weights.normal_(std=0.1)
    batch = dataset.train.batch_of(np.arange(3), np.arange(3))
    loss, count, _ = model_loss(model, batch, None)
    with torch.no_grad():
        vectors = model(inputs_of(batch))[0].double().numpy()
    width, weight = model.config.d_model, model.head.weight.detach().double().numpy()
    expected = 0.0
    for row, times in zip(vectors, batch.targets.numpy(), strict=True):
        for h, y in enumerate(times):
            net = weight @ row[h, :width] + model.head.bias.detach().numpy() + row[h, width]
            linear = row[h, width + 3] + model.head.misses[h].detach().numpy()
            for z, (level, spread) in ((net, row[h, width + 1 : width + 3]), (linear, row[h, width + 4 :])):
                missed = np.arcsinh((y - level) / spread) - z
                q = np.array(model.config.quantiles)
                expected += np.maximum(q * missed, (q - 1) * missed).mean() / 2
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
        entry("forecaster").config(spec, "tiny", lags=[1, 7])
    assert entry("forecaster").config(spec, "tiny").lags == (1, 2)
    assert entry("forecaster").config(spec, "tiny", lags=[1, 2]).lags == (1, 2)


def with_past(dataset):
    """The same market, its wind unknown ahead and read as past."""
    series = dataset.examples[0].series
    changed = replace(
        series,
        known=series.known[:, :1],
        columns=series.columns[:1],
        past=series.known[:, 1:],
        measured=series.columns[1:],
    )
    panel = Panel((changed,), Roles(None, "price", changed.columns, changed.measured))
    return changed, SeriesProcessor.fit(panel, [24 * 30], WORLD)


@pytest.mark.parametrize("settings", [{}, {"form": "decoder_only"}, {"horizon": 48}])
def test_no_model_sees_past_columns_of_the_horizon_and_longer_horizons_repeat_the_season(dataset, settings):
    series, processor = with_past(dataset)
    horizon = settings.get("horizon", 24)
    processor = replace(processor, horizon=horizon)
    form = {key: value for key, value in settings.items() if key != "horizon"}
    assert (processor.spec.n_past, processor.spec.n_channels, processor.spec.n_known) == (1, 11, 9)
    torch.manual_seed(0)
    model = entry("forecaster").config(processor.spec, "tiny", dropout=0.0, **form).build().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    at, ahead = 24 * 30, slice(24 * 30, None)
    found = TASK.forecast(model, processor, [Moment(series, at)])
    later, before = series.past.copy(), series.past.copy()
    later[ahead], before[at - 1] = np.nan, 100.0
    assert (TASK.forecast(model, processor, [Moment(replace(series, past=later, is_sparse=True), at)]) == found).all()
    assert (TASK.forecast(model, processor, [Moment(replace(series, past=before), at)]) != found).any()


def test_a_test_part_shares_no_hour_with_what_training_looks_at():
    found = TASK.ready(replace(WORLD, path="world:electricity?train=30&valid=10", test=0.5, stride=1), seed=0)
    last = max(one.origin + 24 for one in found.examples)
    assert last <= min(one.origin for one in found.test)
    assert len(found.kept) == len(found.examples) < len(found.test)
