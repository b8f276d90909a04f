"""Quantiles over a horizon, in the units of the series, beside what came."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from regard.explain.look import Options
from regard.explain.looks.forecast import forecast
from regard.explain.render.terminal import lines
from regard.tasks.reading import Reading, Side


def reading(came: list[float]) -> Reading:
    """Quantiles 0.1, 0.5 and 0.9 of two times, of which the last two cross."""
    outputs = torch.tensor([[[1.0, 2.0, 3.0], [2.0, 5.0, 4.0]]])
    sides = Side("past", ("0", "1", "2", "3", "4")), Side("horizon", ("2024-01-02 16:00", "2024-01-03 00:00"))
    about = {
        "past": np.array([0.0, 1.0, 2.0, 3.0, 4.0]),
        "past_times": [f"2024-01-0{day} {hour}:00" for day in (1, 2) for hour in ("00", "08", "16")][:5],
        "came": np.array(came),
        "unit": "price",
        "invert": lambda values: 10 * values,
    }
    named = ["q0.1", "q0.5", "q0.9"].__getitem__
    inputs = torch.zeros(1), torch.zeros(1)
    return Reading(nn.Identity(), inputs, sides, lambda *_: outputs, named, about=about)


def test_quantiles_are_in_the_units_of_the_series_and_never_cross():
    view = forecast(reading([12.0, 70.0]), Options())
    panel = view["forecast"]
    assert panel.lines["forecast"] == [(4.0, 20.0), (5.0, 40.0)]
    assert panel.bands == {"q0.1 to q0.9": [(4.0, 10.0, 30.0), (5.0, 20.0, 50.0)]}
    assert panel.lines["past"] == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]  # two horizons of it
    assert panel.lines["what came"] == [(4.0, 12.0), (5.0, 70.0)]
    assert panel.x_names[4] == "2024-01-02 16:00"
    assert panel.x_ticks == [(2.0, "2024-01-02"), (5.0, "2024-01-03")]  # midnights
    assert "50% of what came lies between q0.1 and q0.9" in view["forecast"].note


def test_the_naive_forecast_is_the_last_season_repeated():
    given = reading([12.0, 70.0])
    season = dataclasses.replace(given, about=given.about | {"season": 3})
    view = forecast(season, Options())
    assert view["forecast"].lines["naive"] == [(4.0, 2.0), (5.0, 3.0)]  # of 0 1 2 3 4 the last three begin with 2
    assert "Naive, the same time 3 steps before, misses it by 38.5." in view["forecast"].note  # (10 + 67) / 2
    assert view["quantiles"].columns[-2:] == ["naive#", "came#"]
    assert [row[-2:] for row in view["quantiles"].rows] == [[2.0, 12.0], [3.0, 70.0]]
    for short in (0, 6):
        none = dataclasses.replace(given, about=given.about | {"season": short})
        assert "naive" not in forecast(none, Options())["forecast"].lines


def test_what_has_not_come_is_no_point_of_a_line():
    view = forecast(reading([float("nan")] * 2), Options())
    assert "what came" not in view["forecast"].lines
    assert view["quantiles"].rows[1][-1] is None
    assert view["quantiles"].rows[0][1] == pytest.approx(10)


def test_bands_are_shaded_wherever_they_are_drawn():
    view = forecast(reading([12.0, 70.0]), Options())
    assert view.to_svg().count("<polygon") == 2  # the band and its sample in the legend
    assert view.to_page()["panels"][0]["bands"] == {"q0.1 to q0.9": [[4.0, 10.0, 30.0], [5.0, 20.0, 50.0]]}
    for width, colour, unicode, shade in ((100, False, True, "░"), (20, True, True, "░"), (60, False, False, ".")):
        printed = lines(view, width, colour, unicode)
        assert any(shade * 2 in line and "q0.1 to q0.9" in line for line in printed)
        inside = [line for line in printed if ("|" if not unicode else "│") in line and shade in line]
        assert inside
    text = "\n".join(lines(view, 100))
    assert "2024-01-01 08:00" in text
    assert "2024-01-03 00:00" in text
