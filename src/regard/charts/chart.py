"""Charts of a report: lines, points, numbered points over lines, bars, and intervals, with a title and a legend.

A chart is a drawing, which svg.py and raster.py write out; `line_chart`, `point_chart`, `bar_chart` and
`interval_chart` give it as SVG that stands in a page. The legend stands below, so that a narrow chart is still wide
enough. Without styles lines are dashed from the ninth on. Words take the colour of the page, so that a chart reads on
light and on dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ParamSpec, TypeAlias

from regard.charts.drawing import PAGE, Area, Box, Dot, Drawing, Look, Path, Shape, Words
from regard.charts.plot import COLOURS, Axis, Frame, Plot, short, shown
from regard.charts.svg import inline_svg

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 58, 30, 50, 46
EDGE = 6
BAR, GAP = 20, 8
LETTER = 7.2
LEGEND_LETTERS, LEGEND_ROW = 24, 20
FEW = 12  # points that are marked one by one
DASHED, DOTTED = (5.0, 3.0), (2.0, 3.0)
NUMBER = 11
# How far from its dot a number may stand, from where on a line joins them, and the directions that are tried in turn.
FAR, NEAR = tuple(range(12, 130, 4)), 18
TURNS = tuple(math.pi * eighths / 8 for eighths in (-4, 0, 4, 8, -2, -6, 2, 6, -1, -3, 1, 3, -5, -7, 5, 7))
RING = [math.pi * part / 12 for part in range(25)]
TEXT = Look(13, PAGE)

_P = ParamSpec("_P")


@dataclass(frozen=True)
class Series:
    """A name and its points (x, y). low, high: the ends of an interval for each point, if there is one."""

    name: str
    points: Sequence[tuple[float, float]]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Style:
    """How a series looks: its colour, and how its line is broken."""

    colour: str
    dashes: tuple[float, ...] = ()


Styles: TypeAlias = Mapping[str, Style]
PLAIN: Styles = MappingProxyType({})


def line_drawing(
    title: str,
    series: Sequence[Series],
    x: Axis,
    y: Axis,
    styles: Styles = PLAIN,
    width: float = WIDTH,
) -> Drawing:
    """Lines that join the points of each series in their order; a level line has two points.

    styles  of names, so that several charts agree; what is not among them is drawn as no model is.
    """
    drawing, frame = _framed(title, _around(series, x, y), width)
    places = [[frame.place(*point) for point in shown(one.points, x, y)] for one in series]
    for number, (one, points) in enumerate(zip(series, places, strict=True)):
        style = _style(one.name, number, styles)
        # A line that a later one would hide is seen on both sides of it.
        hidden = sum(_is_same(points, other) for other in places[number + 1 :])
        if one.low and len(one.low) == len(one.points):
            drawing.add(_band(frame, one, style.colour))
        if len(points) > 1:
            drawing.add(Path(points, style.colour, 2 + 3 * hidden, style.dashes))
        if len(points) <= FEW:
            drawing.add(*(Dot(a, b, 3 + 1.5 * hidden, style.colour) for a, b in points))
    _legend(drawing, [one.name for one in series], styles)
    return drawing


def point_drawing(
    title: str,
    series: Sequence[Series],
    x: Axis,
    y: Axis,
    styles: Styles = PLAIN,
    width: float = WIDTH,
) -> Drawing:
    """Points that say their names under the pointer."""
    drawing, frame = _framed(title, _around(series, x, y).wider(), width)
    for number, one in enumerate(series):
        style = _style(one.name, number, styles)
        for place in (frame.place(*point) for point in shown(one.points, x, y)):
            drawing.add(*_point(*place, style, one.name))
    _legend(drawing, [one.name for one in series], styles)
    return drawing


def numbered_drawing(title: str, lines: Sequence[Series], points: Sequence[Series], x: Axis, y: Axis) -> Drawing:
    """Lines, and over them points that have numbers; what the numbers stand for is told below, a line each."""
    drawing, frame = _framed(title, _around([*lines, *points], x, y).wider(), WIDTH)
    for number, one in enumerate(lines):
        drawing.add(
            Path([frame.place(*point) for point in shown(one.points, x, y)], _style(one.name, number, PLAIN).colour)
        )
    _legend(drawing, [one.name for one in lines], PLAIN)
    dots = [frame.place(*point) for one in points for point in shown(one.points, x, y)]
    drawing.add(*(Dot(a, b, 4, PAGE, one.name) for (a, b), one in zip(dots, points, strict=True)))
    for number, (dot, (a, b)) in enumerate(zip(dots, label_places(dots, frame), strict=True), 1):
        away = math.dist(dot, (a, b))
        if away > NEAR:
            short_of = 1 - 8 / away  # of the number, which the line must not strike out
            end = (dot[0] + short_of * (a - dot[0]), dot[1] + short_of * (b - dot[1]))
            drawing.add(Path([dot, end], PAGE, 1, opacity=0.5))
        drawing.add(Words(a, b + 4, str(number), replace(TEXT, size=NUMBER), "middle"))
    for number, one in enumerate(points, 1):
        drawing.add(
            Words(LEFT - 8, drawing.y + 8, str(number), TEXT, "end"),
            Words(LEFT, drawing.y + 8, drawing.label(one.name, TEXT, WIDTH - LEFT), TEXT),
        )
        drawing.y += 17
    return drawing


def label_places(dots: Sequence[tuple[float, float]], frame: Frame) -> list[tuple[float, float]]:
    """Where the middle of each dot's number stands: as near to it as can be, over no dot and over no other number, and
    without a line to its dot only where no other dot could be meant."""
    places: list[tuple[float, float]] = []
    for number, (x, y) in enumerate(dots):
        others = [*dots[:number], *dots[number + 1 :]]
        near = [(far, (x + far * math.cos(turn), y + far * math.sin(turn))) for far in FAR for turn in TURNS]
        free = (
            place
            for far, place in near
            if (far > NEAR or all(math.dist(place, other) > 1.5 * far for other in others))
            and frame.holds(*place)
            and _is_free(place, dots, places)
        )
        places.append(next(free, (x, y - FAR[0])))
    return places


def _is_free(
    place: tuple[float, float], dots: Sequence[tuple[float, float]], numbers: Sequence[tuple[float, float]]
) -> bool:
    def apart(other: tuple[float, float], across: float, up: float) -> bool:
        return abs(place[0] - other[0]) >= across or abs(place[1] - other[1]) >= up

    return all(apart(dot, 12, 10) for dot in dots) and all(apart(number, 17, 12) for number in numbers)


def bar_drawing(
    title: str,
    rows: Sequence[tuple[str, float]],
    label: str,
    intervals: Sequence[tuple[float, float]] = (),
    styles: Styles = PLAIN,
) -> Drawing:
    """A bar for each (name, value) from zero on, with its interval where there is one."""
    rows = [(name, value) for name, value in rows if math.isfinite(value)]
    drawing = _titled(title, TOP + len(rows) * (BAR + GAP) + 30)
    left = 24 + LETTER * max((len(name) for name, _ in rows), default=0)
    top = max([0.0, *(value for _, value in rows), *(high for _, high in intervals)]) or 1.0
    bottom = min([0.0, *(value for _, value in rows)])
    across = WIDTH - left - 90

    def place(value: float) -> float:
        return left + across * (value - bottom) / (top - bottom)

    for number, (name, value) in enumerate(rows):
        y = TOP + number * (BAR + GAP)
        first, last = sorted((place(0.0), place(value)))
        middle = y + BAR / 2
        ends = [place(end) for end in intervals[number]] if intervals else []
        drawing.add(
            Words(left - 8, middle + 4, name, TEXT, "end"),
            Box(first, y, max(1.0, last - first), BAR, _style(name, number, styles).colour),
            Words(max([last, *ends[1:]]) + 6, middle + 4, short(value), TEXT),
        )
        if ends:
            drawing.add(Path([(end, middle) for end in ends], PAGE))
    drawing.add(Words(left, drawing.height - 10, label, TEXT))
    return drawing


def interval_drawing(
    title: str,
    rows: Sequence[tuple[str, float]],
    axis: Axis,
    intervals: Sequence[tuple[float, float]],
    styles: Styles = PLAIN,
    width: float = WIDTH,
) -> Drawing:
    """A dot for each (name, value) over an axis of its own, which need not begin at zero, and its interval."""
    kept = [(row, ends) for row, ends in zip(rows, intervals, strict=True) if shown([(row[1], 0.0)], axis, Axis(""))]
    drawing = _titled(title, TOP + len(kept) * (BAR + GAP) + 30, width)
    left = 24 + LETTER * max((len(name) for (name, _), _ in kept), default=0)
    values = [(value, 0.0) for (_, value), ends in kept for value in (value, *ends)]
    plot = replace(Plot.around(values, axis, Axis("")), up=(0.0, 1.0)).wider()
    frame = Frame(plot, left, TOP - 16, width - left - 70, len(kept) * (BAR + GAP), TEXT, PAGE, 0.15)
    frame.draw_across(drawing)
    for number, ((name, value), ends) in enumerate(kept):
        middle = TOP - 16 + number * (BAR + GAP) + (BAR + GAP) / 2
        style = _style(name, number, styles)
        across = [frame.place(end, 0.0)[0] for end in ends if end > 0 or not axis.log]
        drawing.add(
            Words(left - 8, middle + 4, name, TEXT, "end"),
            *([Path([(end, middle) for end in across], style.colour, 3, opacity=0.5)] if len(across) > 1 else []),
            *_point(frame.place(value, 0.0)[0], middle, style, f"{name}: {short(value)}"),
            Words(width - 62, middle + 4, short(value), TEXT),
        )
    drawing.add(Words(left, drawing.height - 8, axis.label, TEXT))
    return drawing


def _in_page(draw: Callable[_P, Drawing]) -> Callable[_P, str]:
    """What draws, giving SVG that stands in a page."""

    def chart(*args: _P.args, **kwargs: _P.kwargs) -> str:
        return inline_svg(draw(*args, **kwargs))

    return chart


line_chart, point_chart, bar_chart = _in_page(line_drawing), _in_page(point_drawing), _in_page(bar_drawing)
interval_chart = _in_page(interval_drawing)


def _titled(title: str, height: float, width: float = WIDTH) -> Drawing:
    drawing = Drawing(title=title, width=width, y=height, below=0)
    drawing.add(Words(EDGE, 16, title, replace(TEXT, size=15, bold=True)))
    return drawing


def _framed(title: str, plot: Plot, width: float) -> tuple[Drawing, Frame]:
    """A drawing with the grid of a plot and the names of its sides."""
    drawing = _titled(title, HEIGHT, width)
    frame = Frame(plot, LEFT, TOP, width - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, TEXT, PAGE, opacity=0.15)
    frame.draw(drawing)
    drawing.add(Words((LEFT + width - RIGHT) / 2, HEIGHT - 8, plot.x.label, TEXT, "middle"))
    drawing.add(Words(EDGE, TOP - 13, plot.y.label, TEXT))
    return drawing, frame


def _around(series: Sequence[Series], x: Axis, y: Axis) -> Plot:
    """The box that holds all points and the ends of their intervals."""
    points = [point for one in series for point in one.points]
    ends = [(one.points[0][0], end) for one in series if one.points for end in (*one.low, *one.high)]
    return Plot.around([*points, *ends], x, y)


def _band(frame: Frame, one: Series, colour: str) -> Area:
    upper = [frame.place(a, high) for (a, _), high in zip(one.points, one.high, strict=True)]
    lower = [frame.place(a, low) for (a, _), low in zip(one.points, one.low, strict=True)]
    return Area([*upper, *reversed(lower)], colour, opacity=0.15)


def _is_same(points: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> bool:
    """Whether two lines lie over each other."""
    return len(points) == len(others) > 1 and all(math.dist(a, b) < 2 for a, b in zip(points, others, strict=True))


def _style(name: str, number: int, styles: Styles) -> Style:
    """Of a series: what was said of its name, or by its number."""
    if styles:
        # What is no model, such as the best possible, is drawn as none.
        return styles.get(name, Style(PAGE, DOTTED))
    return Style(COLOURS[number % len(COLOURS)], DASHED if number >= len(COLOURS) else ())


def _point(x: float, y: float, style: Style, name: str) -> list[Shape]:
    """A dot; of a series with a broken line a ring around a small one."""
    if not style.dashes:
        return [Dot(x, y, 5, style.colour, name)]
    ring = [(x + 5 * math.cos(turn), y + 5 * math.sin(turn)) for turn in RING]
    return [Path(ring, style.colour, 1.8), Dot(x, y, 2.2, style.colour, name)]


def _legend(drawing: Drawing, names: Sequence[str], styles: Styles) -> None:
    """Below the chart, in as many lines as the names need."""
    x, y = float(LEFT), drawing.y + 14
    for number, name in enumerate(names):
        style = _style(name, number, styles)
        told = name if len(name) <= LEGEND_LETTERS else name[: LEGEND_LETTERS - 1] + "\u2026"
        wide = 24 + TEXT.measure(told) + 14
        if x > LEFT and x + wide > drawing.width:
            x, y = float(LEFT), y + LEGEND_ROW
        drawing.add(Path([(x, y), (x + 18, y)], style.colour, 3, style.dashes), Words(x + 24, y + 4, told, TEXT))
        x += wide
    if names:
        drawing.y = y + 10
