"""Series: what a CSV file says is read back exactly, and what is uneven is refused by its time stamp."""

from __future__ import annotations

import gzip
import math
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.series import CALENDAR, Series, calendar, origins, read_series
from regard.errors import RegardError, UsageError

HOUR = np.timedelta64(3600, "s")
FIRST = datetime(2013, 3, 30)


def write(path: Path, content: str) -> str:
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return str(path)


def hours(n: int, without: tuple[int, ...] = ()) -> list[datetime]:
    return [FIRST + timedelta(hours=i) for i in range(n) if i not in without]


def table(times: list[datetime], price: list[object], load: list[object]) -> str:
    rows = [f"{time},{a},{b}" for time, a, b in zip(times, price, load, strict=True)]
    return "\n".join(["time,price,load", *rows]) + "\n"


def even(n: int, first: str = "2013-01-01T00:00:00", step: np.timedelta64 = HOUR) -> Series:
    times = np.datetime64(first, "s") + np.arange(n) * step
    return Series(times, np.arange(float(n)), np.zeros((n, 0)), (), step)


def refusal(path: str, **choices) -> str:
    with pytest.raises(RegardError) as caught:
        read_series(path, **choices)
    assert "\n" not in str(caught.value)
    return str(caught.value)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=30), packed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_numbers_and_times_come_back_exactly(rows, packed, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"series.csv{'.gz' if packed else ''}"
    times = hours(len(rows))
    series = read_series(write(path, table(times, [repr(a) for a, _ in rows], [repr(b) for _, b in rows])))
    assert series.times.tolist() == times
    assert series.target.tolist() == [a for a, _ in rows]
    assert series.known[:, 0].tolist() == [b for _, b in rows]
    assert (series.columns, series.target_name, series.step) == (("load",), "price", HOUR)
    assert series.notes == ("known ahead: load",)


@pytest.mark.parametrize(
    ("times", "step"),
    [
        (("2013-01-31 23:00", "2013-02-01 00:00"), 3600),
        (("2013-01-31T23:00:00Z", "2013-02-01T01:15:00+01:00"), 4500),
        (("2013/01/31", "2013/02/01"), 86400),
        (("31.01.2013 23:00", "01.02.2013 00:00"), 3600),
    ],
)
def test_times_may_be_written_in_several_ways(times, step, tmp_path):
    series = read_series(write(tmp_path / "a.csv", f"when,y\n{times[0]},1\n{times[1]},2\n"))
    assert series.times[0].astype("datetime64[D]") == np.datetime64("2013-01-31")
    assert series.step == np.timedelta64(step, "s")


def test_columns_are_found_by_name_then_by_what_they_hold(tmp_path):
    rows = "\n a , 5, 2013-01-01, 7 ,\n b , 6, 2013-01-02, 8 ,\n"
    path = write(tmp_path / "a.csv", "station, load , day, Price ,remark" + rows)
    series = read_series(path)
    assert (series.target_name, series.columns) == ("Price", ("load",))
    assert series.target.tolist() == [7, 8]
    chosen = read_series(path, time="day", target="load", known="")
    assert (chosen.target_name, chosen.columns, chosen.known.shape, chosen.notes) == ("load", (), (2, 0), ())
    assert read_series(path, target="load", known="Price").known.tolist() == [[7], [8]]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_and_quotes_and_blank_lines(delimiter, tmp_path):
    lines = ['"time"|"a,b"|c', "", '2013-01-01|"1"|3', "2013-01-02|2|4", "", ""]
    series = read_series(write(tmp_path / "a.csv", "\r\n".join(lines).replace("|", delimiter)))
    assert (series.target_name, series.target.tolist()) == ("a,b", [1, 2])
    assert series.known[:, 0].tolist() == [3, 4]


def test_uneven_times_are_named(tmp_path):
    def message(times: list[datetime], **choices) -> str:
        return refusal(write(tmp_path / "a.csv", table(times, [1] * len(times), [2] * len(times))), **choices)

    # 2013-03-31 02:00 does not exist in the local time of Berlin: the usual hole of summer time.
    assert "a.csv: 2013-03-31 02:00:00 is missing" in message(hours(50, without=(26,)))
    assert "2013-03-30 03:00:00 is there twice" in message([*hours(4), *hours(9)[3:]])
    assert "2013-03-30 02:00:00 comes after 2013-03-30 05:00:00" in message(
        [*hours(6, (2,)), *hours(3)[2:], *hours(9)[7:]]
    )
    mixed = [*hours(5), FIRST + timedelta(hours=4, minutes=30), *hours(9)[5:]]
    assert "mixed steps, 1800 seconds from 2013-03-30 04:00:00" in message(mixed)
    assert "mixed steps" in message(mixed, gaps="interpolate")
    assert "twice" in message([*hours(4), *hours(9)[3:]], gaps="interpolate")


def test_empty_cells_are_named(tmp_path):
    path = write(tmp_path / "a.csv", table(hours(4), [1, 2, "NaN", 4], [1, 2, 3, 4]))
    assert "price has no value at 2013-03-30 02:00:00" in refusal(path)
    path = write(tmp_path / "a.csv", table(hours(4), [1, 2, 3, 4], [1, "", 3, 4]))
    assert "load has no value at 2013-03-30 01:00:00" in refusal(path)


def test_gaps_are_filled_on_the_line_between_neighbours_and_counted(tmp_path):
    times = hours(10, without=(3, 4, 7))
    price = [float(i) for i in range(10) if i not in (3, 4, 7)]
    load: list[object] = [i * i for i in range(10) if i not in (3, 4, 7)]
    load[1] = ""
    series = read_series(write(tmp_path / "a.csv", table(times, price, load)), gaps="interpolate", known="load")
    assert series.target.tolist() == list(range(10))
    assert series.known[:, 0].tolist() == pytest.approx([0, 2, 4, 11, 18, 25, 36, 50, 64, 81])
    assert series.times.tolist() == hours(10)
    assert series.notes == ("filled in 3 missing rows and 1 empty cells",)


def test_what_cannot_be_filled_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", table(hours(4), [1, 2, 3, ""], [1, 2, 3, 4]))
    assert "price has no value at 2013-03-30 03:00:00, an end" in refusal(path, gaps="interpolate")
    slip = [*hours(4), datetime(2103, 3, 30, 4)]
    path = write(tmp_path / "a.csv", table(slip, [1] * 5, [1] * 5))
    assert "too much to fill in" in refusal(path, gaps="interpolate")


def test_targets_still_to_come_are_kept_on_request_only(tmp_path):
    path = write(tmp_path / "a.csv", table(hours(6), [1, 2, "", 4, "", ""], [1, "", 3, 4, 5, 6]))
    assert "price has no value at 2013-03-30 02:00:00" in refusal(path)
    assert "price has no value at 2013-03-30 02:00:00" in refusal(path, future=True)
    series = read_series(path, future=True, gaps="interpolate")
    assert series.observed == 4
    np.testing.assert_array_equal(series.target, [1, 2, 3, 4, np.nan, np.nan])
    assert series.known[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert origins(series, 2, 2, 1).tolist() == [2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("time,price\n2013-01-01,1\n2013-01-02,1.5x\n", "line 3, column 'price': '1.5x' is no number"),
        ("time,price\n\n2013-01-01,1\n2013-01-02,inf\n", "line 4, column 'price': 'inf' is no number"),
        ("time,price\n2013-01-01,1\n2013-01-02,1_0\n", "'1_0' is no number"),
        ("time,price\n2013-01-01,1\n01/02/2013,1\n", "line 3, column 'time': '01/02/2013' is no time"),
        ("time,price\n2013-01-01T00:00Z,1\n2013-01-01T01:00,1\n", "line 3, column 'time'"),
        ("time,price\n2013-01-01T00:00:00.5,1\n2013-01-01T01:00,1\n", "line 2, column 'time'"),
        ("time,price\n2013-01-01,1\n2013-01-02\n", "line 3: 1 cells where the header has 2"),
        ("time,price,price\n2013-01-01,1,1\n2013-01-02,1,1\n", "line 1: 2 columns are called 'price'"),
        ("2013-01-01,1\n2013-01-02,1\n", "line 1: '2013-01-01' is no name"),
        ("time,price\n", "no rows below a header"),
        ("time,price\n2013-01-01,1\n", "give two at least"),
        ("a,b\n1,2\n3,4\n", "no column holds times"),
        ("time,place\n2013-01-01,here\n2013-01-02,there\n", "nothing to forecast"),
        ("time,price\n" + "2013-01-01," + "9" * 200_000 + "\n", "no good CSV"),
    ],
)
def test_files_that_are_no_series_are_refused_by_line_and_column(content, words, tmp_path):
    message = refusal(write(tmp_path / "a.csv", content))
    assert words in message
    assert "a.csv" in message


def test_wrong_choices_name_the_nearest(tmp_path):
    path = write(tmp_path / "a.csv", table(hours(3), [1, 2, 3], [4, 5, 6]))
    assert "did you mean 'price'" in refusal(path, target="prize")
    assert "did you mean 'load'" in refusal(path, known="laod")
    assert "'price' is the time, the target or there twice" in refusal(path, known="load,price")
    assert "did you mean 'interpolate'" in refusal(path, gaps="interpolated")
    assert "is a folder" in refusal(str(tmp_path))
    assert "there is no file" in refusal(str(tmp_path / "none.csv"))


def test_a_series_made_by_hand_is_checked_too():
    series = even(5)
    with pytest.raises(RegardError, match="2013-01-01 02:00:00 is missing"):
        Series(np.delete(series.times, 2), series.target[:4], series.known[:4], (), HOUR)
    with pytest.raises(RegardError, match="do not fit 5 times and 1 columns"):
        Series(series.times, series.target, series.known, ("load",), HOUR)
    with pytest.raises(RegardError, match="load has no value at 2013-01-01 03:00:00"):
        Series(series.times, series.target, np.array([[0], [0], [0], [np.inf], [0]]), ("load",), HOUR)
    assert series.part(1, 4).target.tolist() == [1, 2, 3]


@given(n=st.integers(30, 200), history=st.integers(1, 40), horizon=st.integers(1, 30), offset=st.integers(0, 23))
@settings(max_examples=100, deadline=None)
def test_origins_are_the_day_starts_with_enough_before_and_after(n, history, horizon, offset):
    series = even(n, f"2013-01-01T{offset:02}:00:00")
    expected = [i for i in range(n) if series.times[i].item().hour == 0 and i >= history and i + horizon <= n]
    if expected:
        assert origins(series, history, horizon, 24).tolist() == expected
    else:
        with pytest.raises(RegardError, match="no forecast of"):
            origins(series, history, horizon, 24)


def test_origins_every_step_and_every_week():
    series = even(24 * 30)
    assert origins(series, 3, 2, 1).tolist() == list(range(3, 24 * 30 - 1))
    weeks = [series.times[i].item() for i in origins(series, 1, 1, 168)]
    assert [(time.weekday(), time.hour) for time in weeks] == [(0, 0)] * 4
    with pytest.raises(UsageError, match="every must be at least 1"):
        origins(series, 3, 2, 0)


@pytest.mark.data
def test_real_series_are_read_whole(real_data):
    for market, columns in (
        ("NP", ("load_forecast", "wind_forecast")),
        ("DE", ("load_forecast_amprion", "wind_pv_forecast")),
    ):
        series = read_series(str(real_data / "epf" / f"{market}.train.csv.gz"))
        assert (len(series), series.columns, series.target_name, series.step) == (34_944, columns, "price", HOUR)
        days = origins(series, 168, 24, 24)
        assert len(days) == 34_944 // 24 - 7
        assert days[-1] == 34_944 - 24
    oil = read_series(str(real_data / "ett" / "ETTh1.train_val.csv.gz"), target="OT", known="")
    assert (len(oil), oil.target[0]) == (11_520, 30.5310001373291)


@given(time=st.datetimes().map(lambda time: time.replace(microsecond=0)))
def test_every_number_is_what_the_date_says(time):
    found = dict(zip(CALENDAR, calendar(np.array([time], dtype="datetime64[s]"))[0], strict=True))
    hour = (time.hour + time.minute / 60 + time.second / 3600) / 24
    year = (time.timetuple().tm_yday - 1) / 365.2425
    for name, turn in (("hour", hour), ("weekday", time.weekday() / 7), ("year", year)):
        assert math.isclose(found[f"{name} sin"], math.sin(2 * math.pi * turn), abs_tol=1e-9)
        assert math.isclose(found[f"{name} cos"], math.cos(2 * math.pi * turn), abs_tol=1e-9)
    assert found["weekend"] == (time.weekday() >= 5)
    assert found["sunday"] == (time.weekday() == 6)


def test_no_time_gives_no_row():
    assert calendar(np.array([], dtype="datetime64[s]")).shape == (0, 8)
