"""The calendar against Python's own."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.data.calendar import CALENDAR, calendar


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
