"""Series as people have them, through the verbs: what is forecast, what is known of it, which hours come next."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from calling import call_here, done, refused, told

QUICK = ("--quiet", "--device", "cpu", "--out", "r")
HOUR = np.timedelta64(3600, "s")
FIRST = np.datetime64("2024-01-01T00:00:00", "s")


def measured(hours: int = 24 * 30) -> list[str]:
    """Hours of two loads and of the oil, which follows the first load at the same moment: nobody knows that ahead."""
    chance = np.random.default_rng(0)
    load, other = chance.standard_normal((2, 24 * 60)).round(3)
    rows = [
        f"{FIRST + hour * HOUR},{load[hour]},{other[hour]},{20 + 8 * load[hour] + chance.standard_normal():.3f}"
        for hour in range(hours)
    ]
    return ["date,HUFL,HULL,OT", *rows]


def written(lines: list[str], path: str = "ett.csv") -> str:
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_table_of_measurements_asks_which_column_is_forecast(here: Path):
    outcome = call_here("train", written(measured()), *QUICK)
    assert outcome.code == 2
    assert "ett.csv: which column is to be forecast? Its columns of numbers are HUFL, HULL, OT" in outcome.err
    assert outcome.err.count("\n") == 1
    assert not Path("r").exists()


def test_what_was_measured_is_read_up_to_the_forecast_and_never_beyond(here: Path):
    """The oil follows the load of the same hour: who sees that hour's load has a relative error of a seventh."""
    lines = measured()
    errors = {}
    for name, words in (("past", ()), ("known", ("--set", "data.known=HUFL"))):
        card = told("train", written(lines), "--target", "OT", "--model", "lear", *words, *QUICK[:3], "--out", name)
        errors[name] = card["scores"]["relative_mae"]
    assert errors["known"] < 0.25
    assert errors["past"] > 0.6
    future = [line.rsplit(",", 1)[0] + "," for line in measured(24 * 31)[-24:]]
    changed = [f"{line.split(',')[0]},1e6,-1e6," for line in future]
    blank = [f"{line.split(',')[0]},,," for line in future]
    answers = [
        told("generate", "past", written([*lines, *rows], "next.csv"))["answers"]
        for rows in (future, changed, blank, [])
    ]
    assert answers[0] == answers[1] == answers[2] == answers[3]


def test_without_empty_rows_the_hours_after_the_last_are_forecast(here: Path):
    done("train", written(measured()), "--target", "OT", "--model", "dlinear", *QUICK)
    (answer,) = told("generate", "r", "ett.csv")["answers"]
    assert answer["time"] == [str(FIRST + (24 * 30 + hour) * HOUR) for hour in range(24)]
    half = [*measured(), *(line.rsplit(",", 1)[0] + "," for line in measured(24 * 30 + 5)[-5:])]
    (some,) = told("generate", "r", written(half, "half.csv"))["answers"]
    assert (some["time"], some["forecast"]) == (answer["time"][:5], answer["forecast"][:5])
    view = told("explain", "r", "ett.csv", "--view", "forecast")
    assert view["panels"][0]["x_names"][-24] == "2024-01-31 00:00"
    assert list(view["panels"][0]["bands"]) == ["q0.1 to q0.9", "q0.3 to q0.7"]
    many = [*measured(), *(line.rsplit(",", 1)[0] + "," for line in measured(24 * 31 + 1)[-25:])]
    assert "25 rows at the end lack OT, and the run forecasts 24" in refused("generate", "r", written(many, "many.csv"))
    assert "there is no file none.csv" in refused("generate", "r", "none.csv")
    assert "reads 168 rows with OT, and there are 99" in refused("generate", "r", written(measured(99), "short.csv"))


def test_what_must_be_known_ahead_is_asked_for_by_name(here: Path):
    known = ("--set", "data.known=HUFL,HULL")
    done("train", written(measured()), "--target", "OT", *known, "--model", "dlinear", *QUICK)
    message = refused("generate", "r", "ett.csv")
    assert "to forecast the 24 steps from 2024-01-31 00:00:00 on, HUFL, HULL must be known of each" in message
    tomorrow = [line.rsplit(",", 1)[0] + "," for line in measured(24 * 31)[-24:]]
    assert len(told("generate", "r", written([*measured(), *tomorrow], "next.csv"))["answers"][0]["time"]) == 24
    rows = ["date,HUFL,HULL", *(line.removesuffix(",") for line in tomorrow)]
    alone = refused("generate", "r", written(rows, "alone.csv"))
    assert "alone.csv has no such column" in alone
    assert "begin the file with 168 rows or more that have OT" in alone
    assert "nothing to answer; give a table, or the path of one" in refused("generate", "r")
    holed = [*measured(), *tomorrow[:-1], tomorrow[-1].split(",")[0] + ",,1,"]
    assert "HUFL has no value at 2024-01-31 23:00:00" in refused("generate", "r", written(holed, "holed.csv"))


@pytest.mark.parametrize("model", ["naive", "dlinear", "forecaster"])
def test_a_series_that_repeats_itself_has_errors_and_no_mase(here: Path, model: str):
    written(["time,y", *(f"{FIRST + hour * HOUR},{hour % 24}" for hour in range(24 * 40))], "y.csv")
    outcome = call_here(
        "train", "y.csv", "--model", model, "--size", "tiny", "--budget", "4steps", "--out", "r", "--json"
    )
    assert outcome.code == 0, outcome.err
    assert "MASE is left out: the training part repeats itself exactly after 168 steps" in outcome.err
    scores = told("evaluate", "r")
    assert "mase" not in scores
    assert scores["mae"] < (1e-6 if model != "forecaster" else 10)


def test_the_log_names_the_score_by_which_weights_are_the_best(here: Path):
    written(["time,y", *(f"{FIRST + hour * HOUR},{hour % 24 + hour % 7}" for hour in range(24 * 40))], "y.csv")
    words = ("--size", "tiny", "--budget", "8steps", "--set", "train.evaluate_every=2")
    told_so = call_here("train", "y.csv", *words, "--out", "r").out.split("\n")
    lines = [line for line in told_so if line.startswith("step") and "held-out loss" in line]
    assert len(lines) == 4
    noted = [json.loads(line) for line in Path("r/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    scores = [line["valid_mae"] for line in noted if "valid_mae" in line]
    for number, line in enumerate(lines):
        is_best = scores[number] == min(scores[: number + 1])
        assert line.endswith("best mae so far" if is_best else f"best mae {min(scores[:number]):.4g}")


def shops(days: int = 120, future: int = 0) -> list[str]:
    """Sales of three shops in one file, the second a hundred times the first."""
    chance = np.random.default_rng(1)
    lines = ["day,shop,region,sales"]
    for day in range(days + future):
        for place, (shop, size) in enumerate((("a", 1.0), ("b", 100.0), ("c, d", 10.0))):
            sales = size * (20 + 5 * (day % 7 > 4) + place + chance.standard_normal())
            told = "" if day >= days else f"{sales:.4f}"
            lines.append(f'{np.datetime64("2024-01-01") + day},"{shop}",{"north" if place else "south"},{told}')
    return lines


@pytest.mark.parametrize("model", ["naive", "lear", "forecaster"])
def test_several_series_are_scaled_and_told_each_for_itself(here: Path, model: str):
    words = ("--set", "data.series=shop", "--set", "data.static=region", "--valid", "tail:21d", "--budget", "4steps")
    card = told("train", written(shops(), "shops.csv"), "--model", model, *words, "--size", "tiny", *QUICK)
    scores = told("evaluate", "r")
    rows = {row["series"]: row for row in scores["by_series"]}
    assert list(rows) == ["a", "b", "c, d"]
    assert scores["mae"] == pytest.approx(card["scores"]["mae"])
    assert scores["mae"] == pytest.approx(np.mean([row["mae"] for row in rows.values()]))
    assert scores["mase"] == pytest.approx(np.mean([row["mase"] for row in rows.values()]))
    # The last week of each shop itself, seven days before: from every day of which a week is left.
    values = {shop: [float(line.rsplit(",", 1)[1]) for line in shops()[1 + n :: 3]] for n, shop in enumerate(rows)}
    for shop, row in rows.items():
        own = np.array(values[shop])
        errors = [np.abs(own[day : day + 7] - own[day - 7 : day]).mean() for day in range(99, 114)]
        assert row["weekly_naive_mae"] == pytest.approx(np.mean(errors))
        assert row["horizons"] == 15
    (answer,) = told("generate", "r", written(shops(future=7), "next.csv"))["answers"]
    assert answer["shop"] == ["a"] * 7 + ["b"] * 7 + ["c, d"] * 7
    assert answer["time"][:7] == [str(np.datetime64("2024-04-30") + day) for day in range(7)]
    middle = np.array(answer["forecast"]).reshape(3, 7).mean(1)
    assert middle == pytest.approx([22, 2200, 230], rel=0.15)
    assert answer["text"].split("\n")[-1].startswith('"c, d",2024-05-06,')
    assert [row["horizons"] for row in told("evaluate", "r", "--every", "10d", "--limit", "33")["by_block"]] == [30, 3]
    strange = [line.replace('"a"', '"z"') for line in shops()]
    assert "shop z: the run was not trained on this series" in refused("generate", "r", written(strange, "z.csv"))


def test_a_series_that_begins_too_late_is_left_out_and_named(here: Path):
    late = [f'{np.datetime64("2024-04-20") + day},"new",north,5' for day in range(10)]
    words = ("--set", "data.series=shop", "--valid", "tail:21d", "--model", "naive")
    outcome = call_here("train", written([*shops(), *late], "shops.csv"), *words, *QUICK[1:])
    assert outcome.code == 0, outcome.err
    assert "left out, for nothing of them comes before what is held out: new" in outcome.out


def test_months_have_their_own_season_calendar_and_dates(here: Path):
    months = [np.datetime64("2005-01", "M") + month for month in range(144)]
    values = 100 + 20 * np.sin(np.arange(144) * np.pi / 6) + np.random.default_rng(0).standard_normal(144)
    lines = [f"{month}-01,{value:.3f}" for month, value in zip(months, values, strict=True)]
    card = told("train", written(["month,sales", *lines], "m.csv"), "--model", "naive", "--valid", "tail:2y", *QUICK)
    right = [np.abs(values[at : at + 12] - values[at - 12 : at]).mean() for at in range(120, 133)]
    assert card["scores"]["mae"] == pytest.approx(np.mean(right), abs=1e-3)
    assert card["scores"]["yearly_naive_mae"] == pytest.approx(np.mean(right), abs=1e-3)
    (answer,) = told("generate", "r", "m.csv")["answers"]
    assert answer["time"] == [f"2017-{month:02}-01" for month in range(1, 13)]
    assert answer["forecast"] == pytest.approx(values[-12:], abs=1e-2)
    done("train", "m.csv", "--size", "tiny", "--budget", "4steps", "--device", "cpu", "--quiet", "--out", "f")
    assert len(told("evaluate", "f", "--every", "1y")["by_block"]) == 1
    assert "months or years such as 6m or 2y" in refused("evaluate", "f", "--every", "28d")
    assert "months or years such as 6m or 2y" in refused("train", "m.csv", "--valid", "tail:30d", "--out", "g")


def test_holes_are_refused_filled_or_kept_clear_of(here: Path):
    lines = measured()
    del lines[300:303]
    words = ("--target", "OT", "--set", "data.past=", "--model", "dlinear", "--valid", "tail:4d", "--device", "cpu")
    assert "2024-01-13 11:00:00 is missing; add the row, or say what to do" in refused(
        "train", written(lines), *words, "--out", "r"
    )
    lines[500] = lines[500].rsplit(",", 1)[0] + ","
    assert "OT has no value at 2024-01-21 22:00:00" in refused("train", written(lines), *words, "--out", "r")
    notes = {}
    for way in ("interpolate", "forward", "skip"):
        outcome = call_here("train", "ett.csv", *words, "--set", f"data.gaps={way}", "--out", way)
        assert outcome.code == 0, outcome.err
        notes[way] = [line for line in outcome.out.split("\n") if "3 missing rows and 1 empty cells" in line]
        assert len(notes[way]) == 1
        assert len(told("generate", way, "ett.csv")["answers"][0]["time"]) == 24
    assert "windows that touch them are left out" in notes["skip"][0]
