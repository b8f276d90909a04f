"""The foot of the ladder for series, an ensemble and a rolling evaluation, through the verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calling import done, refused, told

from regard.tasks import task_named

OWN = ("naive", "lear", "dlinear")
UNNAMED = ("--quiet", "--device", "cpu", "--valid", "tail:6d")
QUICK = (*UNNAMED, "--set", "data.known=wind,still,again")


def table(days: int = 40, future: int = 0, first: int = 0) -> str:
    """Hours of a price that follows the wind, a column that never changes and one that repeats another."""
    chance = np.random.default_rng(0)
    wind = chance.standard_normal(24 * 60).round(3)
    lines = ["time,price,wind,still,again"]
    for hour in range(24 * first, 24 * days):
        time = np.datetime64("2024-01-01T00:00:00", "s") + np.timedelta64(3600 * hour, "s")
        price = 30 + 5 * np.sin(hour * np.pi / 12) - 8 * wind[hour] + chance.standard_normal()
        told = "" if hour >= 24 * (days - future) else f"{price:.3f}"
        lines.append(f"{time},{told},{wind[hour]},7,{wind[hour]}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def prices(here: Path) -> Path:
    (here / "p.csv").write_text(table(), encoding="utf-8")
    return here


@pytest.mark.parametrize("model", OWN)
def test_a_fitted_forecast_goes_through_the_verbs(prices: Path, model: str):
    card = told("train", "p.csv", "--model", model, "--size", "tiny", "--out", "r", *QUICK)
    assert (card["reason"], card["model"], card["task"]) == ("fitted", model, "series")
    scores = told("evaluate", "r")
    assert scores["mae"] == pytest.approx(card["scores"]["mae"])
    assert model != "lear" or scores["relative_mae"] < 0.7  # it alone sees the wind
    rolled = told("evaluate", "r", "--every", "2d")
    assert [row["horizons"] for row in rolled["by_block"]] == [2, 2, 2]
    Path("tomorrow.csv").write_text(table(41, future=1), encoding="utf-8")
    (answer,) = told("generate", "r", "tomorrow.csv")["answers"]
    assert len(answer["forecast"]) == 24
    assert np.all(np.diff([answer[f"q0.{n}"] for n in range(1, 10)], axis=0) >= 0)
    assert "fitted" in done("show", "r", "--verify")
    view = told("explain", "r")
    assert (view["panels"][0]["key"] == "forecast") is (model == "naive")
    assert told("explain", "r", "--view", "forecast")["panels"]
    assert "nothing to resume" in refused("train", "--resume", "--out", "r")


def test_explain_shows_which_hours_and_columns_count(prices: Path):
    done("train", "p.csv", "--model", "lear", "--out", "r", *QUICK)
    view = told("explain", "r")
    parts = view["about"]["parts"]
    wind = parts["wind, ahead"] + parts["again, ahead"]
    assert wind == max(wind, *parts.values())
    assert parts["still, ahead"] == 0
    assert len([panel for panel in view["panels"] if panel["kind"] == "heat"]) == len(parts)


def test_they_are_compared(prices: Path):
    report = told("compare", "p.csv", "--models", ",".join(OWN), "--budget", "4steps", "--seeds", "1", "--out", "c")
    assert {row["label"]: row["note"] for row in report["rows"]} == dict.fromkeys(OWN, "is fitted at once")
    assert task_named("series").ladder[:3] == OWN


def test_an_ensemble_goes_through_the_verbs(prices: Path):
    words = ("--size", "tiny", "--budget", "6steps", "--set", "train.ensemble=2", "--out", "e")
    card = told("train", "p.csv", *words, *QUICK)
    assert card["step"] == 6
    assert told("evaluate", "e")["mae"] == pytest.approx(card["scores"]["mae"])
    Path("tomorrow.csv").write_text(table(41, future=1), encoding="utf-8")
    assert len(told("generate", "e", "tomorrow.csv")["answers"][0]["forecast"]) == 24
    assert told("explain", "e")["panels"][0]["key"] == "forecast"
    assert told("explain", "e/parts/1", "--view", "attention")["panels"]
    assert "this run can show forecast" in refused("explain", "e", "--view", "attention")
    assert "spent" in done("show", "e", "--verify")
    done("train", "--resume", "--out", "e", "--budget", "8steps", "--quiet")


def test_a_later_file_goes_on_with_the_run_s_own(prices: Path):
    done("train", "p.csv", "--model", "dlinear", "--out", "r", *QUICK)
    Path("whole.csv").write_text(table(50), encoding="utf-8")
    Path("later.csv").write_text(table(50, first=40), encoding="utf-8")
    Path("far.csv").write_text(table(55, first=45), encoding="utf-8")
    whole, later = (told("evaluate", "r", name, "--every", "5d") for name in ("whole.csv", "later.csv"))
    assert [row["from"][:10] for row in whole["by_block"]] == ["2024-02-04", "2024-02-09", "2024-02-14", "2024-02-19"]
    assert [row["from"][:10] for row in later["by_block"]] == ["2024-02-10", "2024-02-15"]
    assert "nothing missing between" in refused("evaluate", "r", "far.csv", "--every", "5d")
    assert "such as 24h, 28d or 4w" in refused("evaluate", "r", "--every", "2h")
    assert "weights means nothing beside it" in refused("evaluate", "r", "--every", "2d", "--weights", "int8")


def test_a_task_without_time_has_one_line_for_it(here: Path):
    lines = [f"{word} {i}\t{word}" for word in ("good", "bad") for i in range(30)]
    Path("l.tsv").write_text("\n".join(["text\tlabel", *lines]), encoding="utf-8")
    done("train", "l.tsv", "--model", "majority", "--out", "r", "--quiet")
    assert "is a run of the task labelled, and this needs one of series" in refused("evaluate", "r", "--every", "2d")


@pytest.mark.parametrize("model", OWN)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: "\n".join(text.split("\n")[:150]) + "\n",
            "in 149 steps no forecast of 24 has 168 steps before it",
        ),
        (lambda text: text.replace(",7,", ",7,,", 1), "line 2"),
        (lambda text: text.replace(",7,", ",nan,", 1), "still has no value at 2024-01-01 00:00:00"),
    ],
)
def test_bad_series_get_one_line(here: Path, model: str, change: Any, message: str):
    Path("p.csv").write_text(change(table()), encoding="utf-8")
    assert message in refused("train", "p.csv", "--model", model, "--out", "r", *QUICK)
    assert not Path("r").exists()


@pytest.mark.parametrize(
    ("model", "setting", "message"),
    [
        ("lear", "model.lags=[8]", "192 steps back and data.history is 168: raise that, or choose lags of at most 7"),
        ("lear", "model.lags=[0]", "lags are seasons back"),
        ("lear", "model.penalty=l2", "is not a choice"),
        ("dlinear", "model.kernel=4", "odd"),
        ("naive", "model.season=500", "season must lie in 0 .. 168"),
    ],
)
def test_settings_that_cannot_be_get_one_line(prices: Path, model: str, setting: str, message: str):
    assert message in refused("train", "p.csv", "--model", model, "--out", "r", "--set", setting, *QUICK)
    assert not Path("r").exists()
