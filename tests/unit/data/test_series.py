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

from regard.data.grid import from_first, further, steps_in, usual, written
from regard.data.panel import read_panel
from regard.data.series import CALENDAR, Panel, Roles, Series, calendar, origins
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


def read(path: str, *, gaps: str = "refuse", future: bool = False, **roles) -> Panel:
    return read_panel(path, Roles(**roles), gaps, future=future)


def read_series(path: str, **choices) -> Series:
    """The only series of a file."""
    (series,) = read(path, **choices).series
    return series


def refusal(path: str, **choices) -> str:
    with pytest.raises(RegardError) as caught:
        read(path, **choices)
    assert "\n" not in str(caught.value)
    return str(caught.value)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=30), packed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_numbers_and_times_come_back_exactly(rows, packed, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"series.csv{'.gz' if packed else ''}"
    times = hours(len(rows))
    write(path, table(times, [repr(a) for a, _ in rows], [repr(b) for _, b in rows]))
    series = read_series(str(path), known=("load",))
    assert series.times.tolist() == times
    assert series.target.tolist() == [a for a, _ in rows]
    assert series.known[:, 0].tolist() == [b for _, b in rows]
    assert (series.columns, series.target_name, series.step) == (("load",), "price", HOUR)


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


def test_nothing_is_known_ahead_unless_it_is_named(tmp_path):
    rows = "\n a , 5, 2013-01-01, 7 ,\n b , 6, 2013-01-02, 8 ,\n"
    path = write(tmp_path / "a.csv", "station, load , day, Price ,remark" + rows)
    panel = read(path)
    (series,) = panel.series
    assert (series.target_name, series.target.tolist()) == ("Price", [7, 8])
    assert (series.columns, series.measured, series.past.tolist()) == ((), ("load",), [[5], [6]])
    assert (panel.roles.known, panel.roles.past, panel.ignored) == ((), ("load",), ("station", "remark"))
    alone = read_series(path, time="day", target="load", past=())
    assert (alone.target_name, alone.columns, alone.measured) == ("load", (), ())
    assert read_series(path, target="load", known=("Price",)).known.tolist() == [[7], [8]]


def test_a_target_that_nothing_tells_is_asked_for(tmp_path):
    path = write(tmp_path / "a.csv", "time,HUFL,OT\n2013-01-01,1,2\n2013-01-02,3,4\n")
    assert "which column is to be forecast? Its columns of numbers are HUFL, OT; name one with --target" in refusal(
        path
    )
    assert read_series(path, target="OT").measured == ("HUFL",)
    assert read_series(path, known=("HUFL",)).target_name == "OT"  # one column is left
    for name in ("target", "Y", "Price", "VALUE"):
        write(tmp_path / "b.csv", f"time,a,{name}\n2013-01-01,1,2\n2013-01-02,3,4\n")
        assert read_series(str(tmp_path / "b.csv")).target_name == name
    both = write(tmp_path / "c.csv", "time,y,price\n2013-01-01,1,2\n2013-01-02,3,4\n")
    assert "which column is to be forecast?" in refusal(both)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_and_quotes_and_blank_lines(delimiter, tmp_path):
    lines = ['"time"|"a,b"|c', "", '2013-01-01|"1"|3', "2013-01-02|2|4", "", ""]
    series = read_series(write(tmp_path / "a.csv", "\r\n".join(lines).replace("|", delimiter)), target="a,b")
    assert (series.target_name, series.target.tolist()) == ("a,b", [1, 2])
    assert series.past[:, 0].tolist() == [3, 4]


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
    path = write(tmp_path / "a.csv", table(times, price, load))
    for role in ("known", "past"):
        panel = read(path, gaps="interpolate", **{role: ("load",)})
        (series,) = panel.series
        assert series.target.tolist() == list(range(10))
        found = series.known if role == "known" else series.past
        assert found[:, 0].tolist() == pytest.approx([0, 2, 4, 11, 18, 25, 36, 50, 64, 81])
        assert series.times.tolist() == hours(10)
        assert panel.notes == ("filled in 3 missing rows and 1 empty cells (data.gaps = interpolate)",)
    forward = read(path, gaps="forward")
    assert forward.series[0].target.tolist() == [0, 1, 2, 2, 2, 5, 6, 6, 8, 9]
    assert forward.series[0].past[:, 0].tolist() == [0, 0, 4, 4, 4, 25, 36, 36, 64, 81]
    assert forward.notes == ("filled in 3 missing rows and 1 empty cells (data.gaps = forward)",)


def test_windows_keep_clear_of_holes_that_are_left(tmp_path):
    price: list[object] = [float(i) for i in range(12)]
    price[5] = ""
    load: list[object] = [1.0] * 12
    load[9] = ""
    path = write(tmp_path / "a.csv", table(hours(12), price, load))
    panel = read(path, gaps="skip")
    assert panel.notes == ("0 missing rows and 2 empty cells: windows that touch them are left out",)
    # Two steps before and two after are whole; a past column may be empty in the horizon, which nobody reads of it.
    assert origins(panel.series[0], 2, 2, 1).tolist() == [2, 3, 8, 9]
    assert origins(read_series(path, gaps="skip", past=()), 2, 2, 1).tolist() == [2, 3, 8, 9, 10]


def test_what_cannot_be_filled_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", table(hours(4), [1, 2, 3, ""], [1, 2, 3, 4]))
    assert "price has no value at 2013-03-30 03:00:00, an end" in refusal(path, gaps="interpolate")
    slip = [*hours(4), datetime(2103, 3, 30, 4)]
    path = write(tmp_path / "a.csv", table(slip, [1] * 5, [1] * 5))
    assert "too much to fill in" in refusal(path, gaps="interpolate")
    path = write(tmp_path / "a.csv", table(hours(4), ["", 2, 3, 4], [1, 2, 3, 4]))
    assert "price has no value at 2013-03-30 00:00:00, the beginning" in refusal(path, gaps="forward")


def test_targets_still_to_come_are_kept_on_request_only(tmp_path):
    path = write(tmp_path / "a.csv", table(hours(6), [1, 2, "", 4, "", ""], [1, "", 3, 4, 5, 6]))
    assert "price has no value at 2013-03-30 02:00:00" in refusal(path)
    assert "price has no value at 2013-03-30 02:00:00" in refusal(path, future=True)
    series = read_series(path, future=True, gaps="interpolate", known=("load",))
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
        ("time,price\n2013-01-01,1\n2013-01-02\n", "line 3: 1 column where line 1 has 2"),
        ("time,price,price\n2013-01-01,1,1\n2013-01-02,1,1\n", "line 1: 2 columns are called 'price'"),
        ("2013-01-01,1\n2013-01-02,1\n", "line 1: '2013-01-01' is no name"),
        ("time,price\n", "holds a header and nothing else"),
        ("time,price\n2013-01-01,1\n", "give two at least"),
        ("a,b\n1,2\n3,4\n", "no column holds times"),
        ("time,place\n2013-01-01,here\n2013-01-02,there\n", "nothing to forecast"),
        ("time,price\n" + "2013-01-01," + "9" * 200_000 + "\n", "nothing to forecast"),
    ],
)
def test_files_that_are_no_series_are_refused_by_line_and_column(content, words, tmp_path):
    message = refusal(write(tmp_path / "a.csv", content))
    assert words in message
    assert "a.csv" in message


def test_wrong_choices_name_the_nearest(tmp_path):
    path = write(tmp_path / "a.csv", table(hours(3), [1, 2, 3], [4, 5, 6]))
    assert "did you mean 'price'" in refusal(path, target="prize")
    for role in ("known", "past"):
        assert "did you mean 'load'" in refusal(path, **{role: ("laod",)})
    assert "'price' is there twice: a column is the time, the target, known" in refusal(
        path, target="price", known=("load", "price")
    )
    assert "'load' is there twice" in refusal(path, known=("load",), past=("load",))
    assert "name the column of series (data.series)" in refusal(path, static=("load",))
    assert "did you mean 'interpolate'" in refusal(path, gaps="interpolated")
    assert "is a folder" in refusal(str(tmp_path))
    assert "there is no file" in refusal(str(tmp_path / "none.csv"))


def test_a_series_made_by_hand_is_checked_too():
    series = even(5)
    with pytest.raises(RegardError, match="2013-01-01 02:00:00 is missing"):
        Series(np.delete(series.times, 2), series.target[:4], series.known[:4], (), HOUR)
    with pytest.raises(RegardError, match="do not fit 5 times, 1 and 0 columns"):
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
        series = read_series(str(real_data / "epf" / f"{market}.train.csv.gz"), known=columns)
        assert (len(series), series.columns, series.target_name, series.step) == (34_944, columns, "price", HOUR)
        days = origins(series, 168, 24, 24)
        assert len(days) == 34_944 // 24 - 7
        assert days[-1] == 34_944 - 24
    transformer = str(real_data / "ett" / "ETTh1.train_val.csv.gz")
    assert "which column is to be forecast? Its columns of numbers are HUFL, HULL, MUFL" in refusal(transformer)
    oil = read_series(transformer, target="OT")
    assert (oil.columns, oil.measured) == ((), ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL"))
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


def monthly(*, end: bool) -> list[str]:
    firsts = [datetime(2019 + month // 12, month % 12 + 1, 1) for month in range(25)]
    return [str((first - timedelta(days=1) if end else first).date()) for first in firsts[end:]]


@pytest.mark.parametrize("end", [False, True])
def test_months_are_even_steps_though_they_are_not_equally_long(end, tmp_path):
    times = monthly(end=end)
    rows = "\n".join(f"{time},{number}" for number, time in enumerate(times) if number != 5)
    path = write(tmp_path / "a.csv", f"month,sales\n{rows}\n")
    assert f"{times[5]} 00:00:00 is missing" in refusal(path)
    series = read_series(path, gaps="interpolate")
    assert series.step == np.timedelta64(1, "M")
    assert [str(time)[:10] for time in series.times] == times
    assert series.target.tolist() == list(range(len(times)))
    after = written(further(series.times, series.step, 3), series.step)
    assert after == (["2021-01-31", "2021-02-28", "2021-03-31"] if end else ["2021-02-01", "2021-03-01", "2021-04-01"])
    assert [series.times[i].item().month for i in origins(series, 1, 1, 12)] == [1] * (2 - end)
    # On which weekday a month begins says nothing of it.
    assert np.abs(calendar(series.times, series.step)[:, [2, 3, 6, 7]]).max() == 0


def test_quarters_and_years_are_steps_of_months(tmp_path):
    for months, times in (
        (3, ("2020-01-01", "2020-04-01", "2020-07-01")),
        (12, ("2019-01-01", "2020-01-01", "2021-01-01")),
    ):
        path = write(tmp_path / "a.csv", "day,y\n" + "".join(f"{time},1\n" for time in times))
        series = read_series(path)
        assert series.step == np.timedelta64(months, "M")
        assert from_first(series.times, series.step, np.arange(3)).tolist() == series.times.tolist()


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (60, (1440, 96)),
        (900, (672, 96)),
        (3600, (168, 24)),
        (86_400, (49, 7)),
        (604_800, (104, 13)),
        (5 * 86_400, (8, 4)),
    ],
)
def test_what_is_read_and_forecast_suits_the_step(seconds, expected):
    assert usual(np.timedelta64(seconds, "s")) == expected


def test_spans_are_counted_in_steps_of_their_kind():
    assert steps_in("28d", HOUR) == 672
    assert steps_in("2y", np.timedelta64(1, "M")) == 24
    assert steps_in("6m", np.timedelta64(3, "M")) == 2
    assert steps_in("28d", np.timedelta64(1, "M")) == steps_in("2y", HOUR) == steps_in("28", HOUR) == 0


def shops(rows: list[tuple[object, ...]]) -> str:
    return "\n".join(["day,shop,area,sales", *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_several_series_of_one_file_are_told_apart(tmp_path):
    days = [f"2024-01-{day:02}" for day in range(1, 5)]
    rows = [(day, shop, 5 if shop == "a" else 7, n) for n, day in enumerate(days) for shop in "ab"]
    path = write(tmp_path / "a.csv", shops([*rows, ("2024-01-01", "c", 1, 1)]))
    panel = read(path, target="sales", series="shop", static=("area",))
    assert [(one.label, one.static, one.target.tolist()) for one in panel.series] == [
        ("a", ("5",), [0, 1, 2, 3]),
        ("b", ("7",), [0, 1, 2, 3]),
    ]
    assert panel.notes[0] == "left out, for one row makes no series: c"
    assert "name the column that tells several series apart (data.series = NAME)" in refusal(path, target="sales")
    changed = write(tmp_path / "b.csv", shops([*rows, ("2024-01-05", "a", 6, 4)]))
    assert "area is not the same all along shop a: 5, 6" in refusal(
        changed, target="sales", series="shop", static=("area",)
    )
    unlike = write(tmp_path / "c.csv", shops([*rows, *((f"2024-01-{d:02}", "d", 1, 1) for d in (1, 8, 15))]))
    assert "shop d: a step of a week, and" in refusal(unlike, target="sales", series="shop")
    holed = write(tmp_path / "d.csv", shops([row for row in rows if row[:2] != ("2024-01-03", "b")]))
    assert "d.csv, shop b: 2024-01-03 00:00:00 is missing" in refusal(holed, target="sales", series="shop")
    nameless = write(tmp_path / "e.csv", shops([*rows, ("2024-01-05", "", 1, 1)]))
    assert "line 10, column 'shop': no series is named" in refusal(nameless, target="sales", series="shop")
