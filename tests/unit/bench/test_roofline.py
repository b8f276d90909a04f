"""The picture of floors: a dot for every work, under its roof, and the ceilings as lines."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from regard.bench.machine import Machine
from regard.bench.race import Row
from regard.bench.roofline import distinct, roofline
from regard.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"
HERE = Machine("cpu", "a machine", 2, "float32", flops=1e11, read=2e10, copied=1e10)
STEP = Row("gpt step, beside a peer", 1.0, None, None, None, "", "", 2.0, 1e11, 1e9).on(HERE)
TOKEN = Row("a token", 1.0, None, None, None, "", "", 1.0, 1e9, 1e10).on(HERE)


def test_a_work_that_stands_beside_two_peers_is_one_dot():
    rows = [STEP, replace(STEP, name="gpt step, beside another", seconds=4.0), TOKEN, Row("m", 1, 1, 1, 1, "MB")]
    assert distinct(rows) == [("gpt step", 100.0, 5e10, 0.5), ("a token", 0.1, 1e9, 0.5)]


def test_dots_are_numbered_and_named_below_and_the_roof_is_two_lines():
    root = ElementTree.fromstring(roofline(HERE, [STEP, TOKEN]))
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert {"gpt step: 50%", "a token: 50%", "1", "2", "20GB/s", "100GFLOP/s", "operations a byte"} <= set(words)
    assert len(list(root.iter(f"{SVG}circle"))) == 2
    roofs = [line for line in root.iter(f"{SVG}polyline") if line.attrib["stroke-width"] == "2"]
    slope, level = ([tuple(map(float, p.split(","))) for p in line.attrib["points"].split()] for line in roofs)
    assert slope[1] == level[0]
    assert slope[0][1] > slope[1][1]
    assert level[0][1] == level[1][1]
    for dot in root.iter(f"{SVG}circle"):
        assert float(dot.attrib["cy"]) > level[0][1]


@pytest.mark.parametrize("rows", [[], [Row("memory", 5.0, 10.0, 2.0, None, "MB")]])
def test_rows_without_a_floor_are_no_picture(rows: list[Row]):
    with pytest.raises(UsageError, match="none of these benchmarks has a floor"):
        roofline(HERE if rows else None, rows)
