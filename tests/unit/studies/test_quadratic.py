"""The rule on costs, and the measures it rests on."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import torch

from regard.studies.claims.quadratic import CONSTANT, MIXERS, Quadratic
from regard.studies.claims.timing import exponent, kept_bytes, seconds_of_each


def costs(memory: float, time: float, growth: float = 1.0) -> dict:
    powers = {"memory_exponent": memory, "fused_memory_exponent": 1.0, "time_exponent": time}
    return powers | {"state_growth": growth, "step_growth": growth, "time": [0.1, 0.2]}


def seed(**changes) -> dict:
    found = {name: costs(1.0, 1.0) for name in CONSTANT} | {"attention": costs(2.0, 1.9, 8.0), "lengths": [512, 1024]}
    return found | changes


def test_the_verdict_follows_the_powers():
    study = Quadratic()
    assert study.judge([seed(), seed()]).outcome == "holds"
    assert study.judge([seed(attention=costs(1.7, 1.9))]).outcome == "does not hold"
    assert study.judge([seed(rnn=costs(1.0, 1.9))]).outcome == "does not hold"
    assert study.judge([seed(mamba=costs(1.0, 1.0, 2.0)), seed()]).outcome == "not settled"


def test_the_figure_has_a_line_for_every_mixer():
    drawn = ElementTree.fromstring(Quadratic().figure([seed(), seed()]))
    lines = drawn.iter("{http://www.w3.org/2000/svg}polyline")
    assert len({line.attrib["stroke"] for line in lines if float(line.attrib["stroke-width"]) >= 2}) == len(MIXERS)


def test_kept_bytes_are_those_of_the_graph():
    x = torch.ones(1000, requires_grad=True)
    # exp keeps its output, sin its input: two storages of 4,000 bytes.
    assert kept_bytes(lambda: x.exp()) == 4000
    assert kept_bytes(lambda: x.exp().sin()) == 4000
    assert kept_bytes(lambda: (x.exp() * x.sin()).sum()) == 12_000


def test_the_exponent_is_the_slope_of_logarithms():
    assert exponent([1, 2, 4, 8], [5, 40, 320, 2560]) == pytest.approx(3)
    assert exponent([10, 20], [7, 7]) == pytest.approx(0)


def test_work_is_timed_in_turn_after_a_warm_up():
    calls: list[str] = []
    seconds_of_each([lambda: calls.append("a"), lambda: calls.append("b")], 2)
    assert calls == ["a", "b"] * 3
