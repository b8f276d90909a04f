"""A chart is one drawing: the SVG of a page, a file of its own and a PNG show the same lines, dots, bars and words."""

from __future__ import annotations

import io
import math
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from regard.charts.chart import (
    Series,
    Style,
    bar_chart,
    bar_drawing,
    interval_chart,
    line_chart,
    line_drawing,
    numbered_drawing,
    point_chart,
)
from regard.charts.drawing import Dot, Drawing, Path, Words
from regard.charts.plot import COLOURS, Axis, Frame, Plot, ticks, told_apart
from regard.charts.raster import png
from regard.charts.svg import svg

SVG = "{http://www.w3.org/2000/svg}"
LINES = [
    Series("a <b> & c", [(1, 3.0), (10, 2.0), (100, 1.0)], low=[2.9, 1.9, 0.9], high=[3.1, 2.1, 1.1]),
    Series("without points", [(1, float("nan")), (0, 1.0)]),
    Series("the best", [(1, 0.5), (100, 0.5)]),
]
AXES = (Axis("tokens", log=True), Axis("nats"))


def pixels(drawing: Drawing) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png(drawing, 2))).convert("RGB"))


def holds(picture: np.ndarray, colour: str) -> bool:
    return bool((picture == [int(colour[place : place + 2], 16) for place in (1, 3, 5)]).all(-1).any())


def test_the_words_of_a_chart_are_in_its_svg_and_its_lines_take_the_colour_of_the_page():
    root = ElementTree.fromstring(
        line_chart("Loss & <more>", LINES, *AXES, {name: Style(COLOURS[0]) for name in ("a <b> & c", "without points")})
    )
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert {"Loss & <more>", "tokens", "nats", "a <b> & c", "the best", "1", "10", "100"} <= set(words)
    assert "width" not in root.attrib
    assert root.attrib["viewBox"] == "0 0 640 364"
    assert {element.attrib["fill"] for element in root.iter(f"{SVG}text")} == {"currentColor"}
    dashed = [line.attrib["stroke"] for line in root.iter(f"{SVG}polyline") if "stroke-dasharray" in line.attrib]
    assert dashed == ["currentColor"] * 2  # what is no model, and its place in the legend


def test_a_series_without_points_that_can_be_shown_has_no_line():
    root = ElementTree.fromstring(line_chart("", LINES, *AXES))
    assert sum(line.attrib["stroke-width"] == "2" for line in root.iter(f"{SVG}polyline")) == 2
    assert len(list(root.iter(f"{SVG}circle"))) == 5


def test_a_line_under_another_is_seen_on_both_sides_of_it():
    lines = [
        Series("under", [(1, 1.0), (9, 1.0)]),
        Series("apart", [(1, 0.0), (9, 0.0)]),
        Series("over", [(1, 1), (9, 1)]),
    ]
    drawn = [shape for shape in line_drawing("", lines, *AXES).shapes if isinstance(shape, Path) and shape.width >= 2]
    assert [path.width for path in drawn[:3]] == [5, 2, 2]


def test_points_say_their_names_under_the_pointer():
    root = ElementTree.fromstring(point_chart("", LINES, *AXES))
    assert [dot.findtext(f"{SVG}title") for dot in root.iter(f"{SVG}circle")] == ["a <b> & c"] * 3 + ["the best"] * 2


def test_a_chart_is_a_png_with_the_same_colours_and_size():
    lines = line_drawing("Loss", LINES, *AXES)
    picture = pixels(lines)
    assert picture.shape == (728, 1280, 3)
    assert all(holds(picture, colour) for colour in (COLOURS[0], COLOURS[2], "#1a1a1a"))
    bars = pixels(bar_drawing("Scores", [("a", 1.0), ("b", 0.5)], "share", [(0.9, 1.1), (0.4, 0.6)]))
    assert all(holds(bars, colour) for colour in COLOURS[:2])


def test_a_chart_of_its_own_stands_on_white():
    root = ElementTree.fromstring(svg(line_drawing("Loss", LINES, *AXES)))
    assert root.attrib["width"] == "640"
    assert [ground.attrib["fill"] for ground in root.iter(f"{SVG}rect")] == ["#ffffff"]


def test_bars_that_are_no_numbers_are_left_out_and_no_bars_are_still_a_chart():
    root = ElementTree.fromstring(bar_chart("", [("a", float("nan")), ("b", -1.0)], "share"))
    assert len(list(root.iter(f"{SVG}rect"))) == 1
    ElementTree.fromstring(bar_chart("", [], "share"))


def test_names_along_a_side_stand_apart_however_narrow_it_is():
    names = tuple(f"{number}-{2 * number}" for number in (1000, 2000, 4000, 8000, 16000, 32000))
    for width in (100, 200, 400):
        frame = Frame(Plot(Axis("", names=names), Axis(""), (0, 5), (0, 1)), 0, 0, width, 100)
        drawing = Drawing()
        frame.draw_across(drawing)
        words = [shape for shape in drawing.shapes if isinstance(shape, Words)]
        ends = [
            (word.x - word.look.measure(word.text) / 2, word.x + word.look.measure(word.text) / 2) for word in words
        ]
        assert words
        assert all(one[1] < other[0] for one, other in pairwise(ends))


def test_a_legend_stays_within_its_chart_and_below_it():
    lines = [Series(f"model number {number}", [(1, 1.0), (2, 2.0)]) for number in range(8)]
    drawing = line_drawing("", lines, *AXES, width=300)
    words = [shape for shape in drawing.shapes if isinstance(shape, Words) and shape.text.startswith("model")]
    assert len({word.y for word in words}) == 8
    assert all(340 < word.y < drawing.height and word.x + word.look.measure(word.text) <= 300 for word in words)


def test_intervals_stand_over_an_axis_that_a_far_one_does_not_flatten():
    rows, ends = [("a", 0.01), ("b", 0.02), ("c", 5.0)], [(0.009, 0.011), (0.019, 0.021), (4.0, 6.0)]
    root = ElementTree.fromstring(interval_chart("", rows, Axis("far", log=True), ends))
    a, b, c = (float(dot.attrib["cx"]) for dot in root.iter(f"{SVG}circle"))
    assert (b - a) / (c - a) == pytest.approx(math.log(2) / math.log(500), abs=0.01)
    ElementTree.fromstring(interval_chart("", [], Axis("far", log=True), []))


def test_numbers_of_crowded_points_stand_over_no_dot_and_over_no_other_number():
    chance = np.random.default_rng(0)
    places = chance.normal(1.0, 0.02, (25, 2))
    points = [Series(f"work {number}", [(float(a), float(b))]) for number, (a, b) in enumerate(places)]
    roof = [Series("roof", [(0.1, 10.0), (10.0, 10.0)])]
    drawing = numbered_drawing("Reached", roof, points, Axis("x", log=True), Axis("y", log=True))
    dots = [shape for shape in drawing.shapes if isinstance(shape, Dot)]
    words = [shape for shape in drawing.shapes if isinstance(shape, Words)]
    numbers = [word for word in words if word.text.isdigit() and word.anchor == "middle" and word.look.size == 11]
    assert [int(word.text) for word in numbers] == list(range(1, 26))
    for one in numbers:
        assert all(abs(one.x - dot.x) >= 10 or abs(one.y - 4 - dot.y) >= 9 for dot in dots)
        assert all(abs(one.x - other.x) >= 16 or abs(one.y - other.y) >= 11 for other in numbers if other is not one)
    led = {
        path.points[0] for path in drawing.shapes if isinstance(path, Path) and path.width == 1 and path.opacity == 0.5
    }
    for number, dot in zip(numbers, dots, strict=True):
        nearest = min(dots, key=lambda one: math.dist((one.x, one.y), (number.x, number.y - 4)))
        assert nearest is dot or (dot.x, dot.y) in led
    assert {f"work {number}" for number in range(25)} <= {word.text for word in words}
    assert drawing.height >= max(word.y for word in words)


@pytest.mark.parametrize("ends", [(0.9248, 0.9267), (0.0, 10.0), (12_340_000.0, 12_349_000.0), (-1e-5, 2e-5)])
def test_no_two_ticks_of_an_axis_say_the_same(ends: tuple[float, float]) -> None:
    values = ticks(ends, log=False)
    words = told_apart(values)
    assert len(set(words)) == len(words) == len(values) > 3
    drawn = line_drawing("", [Series("a", [(0.0, ends[0]), (1.0, ends[1])])], Axis("x"), Axis("y"))
    assert set(words) <= {shape.text for shape in drawn.shapes if isinstance(shape, Words)}
