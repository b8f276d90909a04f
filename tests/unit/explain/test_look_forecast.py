"""Quantiles over a horizon, in the units of the series, beside what came."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from regard.explain.look import Options
from regard.explain.looks.forecast import forecast
from regard.tasks.reading import Reading, Side


def reading(came: list[float]) -> Reading:
    """Quantiles 0.1, 0.5 and 0.9 of two times, of which the last two cross."""
    outputs = torch.tensor([[[1.0, 2.0, 3.0], [2.0, 5.0, 4.0]]])
    sides = Side("past", ("0", "1", "2", "3", "4")), Side("horizon", ("5", "6"))
    about = {
        "past": np.array([0.0, 1.0, 2.0, 3.0, 4.0]),
        "came": np.array(came),
        "unit": "price",
        "invert": lambda values: 10 * values,
    }
    named = ["q0.1", "q0.5", "q0.9"].__getitem__
    inputs = torch.zeros(1), torch.zeros(1)
    return Reading(nn.Identity(), inputs, sides, lambda *_: outputs, named, about=about)


def test_quantiles_are_in_the_units_of_the_series_and_never_cross():
    view = forecast(reading([12.0, 70.0]), Options())
    lines = view["forecast"].lines
    assert lines["q0.1"] == [(1.0, 10.0), (2.0, 20.0)]
    assert lines["q0.5"] == [(1.0, 20.0), (2.0, 40.0)]
    assert lines["q0.9"] == [(1.0, 30.0), (2.0, 50.0)]
    assert lines["past"][-1] == (0.0, 4.0)
    assert lines["what came"] == [(1.0, 12.0), (2.0, 70.0)]
    assert "50% of what came lies between q0.1 and q0.9" in view["forecast"].note


def test_what_has_not_come_is_no_point_of_a_line():
    view = forecast(reading([float("nan")] * 2), Options())
    assert "what came" not in view["forecast"].lines
    assert view["quantiles"].rows[1][-1] is None
    assert view["quantiles"].rows[0][1] == pytest.approx(10)
