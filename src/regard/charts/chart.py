"""Charts as SVG: lines, bars and points, written out by hand so that a report is one file and needs no network.

From the ninth series on lines are dashed. Text takes the colour of the page, and a chart reads on light and on dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from regard.charts.axis import COLOURS, Axis, share_of, short, ticks, value_range

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 34, 48
BAR, GAP = 20, 8
LETTER = 6.6
MARGIN = 0.06


@dataclass(frozen=True)
class Series:
    """A name and its points (x, y). low, high: the ends of an interval for each point, if there is one."""

    name: str
    points: Sequence[tuple[float, float]]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def line_chart(title: str, series: Sequence[Series], x: Axis, y: Axis, order: Sequence[str] = ()) -> str:
    """Lines that join the points of each series in their order; a level line has two points.

    order  names whose place gives their colour, so that several charts of one page agree.
    """
    frame = _Frame.around(series, x, y)
    parts = [frame.drawn()]
    for number, one in enumerate(series):
        colour, dash = _look(one.name, number, order)
        points = [frame.place(*point) for point in frame.kept(one)]
        if one.low and len(one.low) == len(one.points):
            parts.append(_band(frame, one, colour))
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if len(points) <= 12:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
    parts += _legend([one.name for one in series], order)
    return _svg(title, "".join(parts), HEIGHT)


def point_chart(title: str, series: Sequence[Series], x: Axis, y: Axis, order: Sequence[str] = ()) -> str:
    """Points with their names beside them."""
    frame = _Frame.around(series, x, y).wider()
    parts = [frame.drawn()]
    for number, one in enumerate(series):
        colour, _ = _look(one.name, number, order)
        parts += [
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="5" fill="{colour}"><title>{escape(one.name)}</title></circle>'
            for a, b in (frame.place(*point) for point in frame.kept(one))
        ]
    parts += _legend([one.name for one in series], order)
    return _svg(title, "".join(parts), HEIGHT)


def bar_chart(
    title: str,
    rows: Sequence[tuple[str, float]],
    label: str,
    intervals: Sequence[tuple[float, float]] = (),
    order: Sequence[str] = (),
) -> str:
    """A bar for each (name, value) from zero on, with its interval where there is one."""
    rows = [(name, value) for name, value in rows if math.isfinite(value)]
    left = 24 + LETTER * max((len(name) for name, _ in rows), default=0)
    top = max([0.0, *(value for _, value in rows), *(high for _, high in intervals)]) or 1.0
    bottom = min([0.0, *(value for _, value in rows)])
    across = WIDTH - left - 90

    def place(value: float) -> float:
        return left + across * (value - bottom) / (top - bottom)

    parts = []
    for number, (name, value) in enumerate(rows):
        y = TOP + number * (BAR + GAP)
        first, last = sorted((place(0.0), place(value)))
        middle = y + BAR / 2
        parts.append(
            f'<text x="{left - 8:.1f}" y="{middle + 4:.1f}" text-anchor="end" fill="currentColor">{escape(name)}</text>'
            f'<rect x="{first:.1f}" y="{y}" width="{max(1.0, last - first):.1f}" height="{BAR}" '
            f'fill="{_look(name, number, order)[0]}"/>'
            f'<text x="{max(last, place(intervals[number][1]) if intervals else last) + 6:.1f}" y="{middle + 4:.1f}" '
            f'fill="currentColor">{short(value)}</text>'
        )
        if intervals:
            low, high = (place(end) for end in intervals[number])
            parts.append(f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="currentColor" stroke-width="2"/>')
    height = TOP + len(rows) * (BAR + GAP) + 30
    parts.append(f'<text x="{left:.1f}" y="{height - 10}" fill="currentColor" opacity="0.75">{escape(label)}</text>')
    return _svg(title, "".join(parts), height)


@dataclass(frozen=True)
class _Frame:
    """The box of a chart, its ticks, and where a value lies in it."""

    x: Axis
    y: Axis
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    @classmethod
    def around(cls, series: Sequence[Series], x: Axis, y: Axis) -> _Frame:
        """The box that holds all points."""
        points = [point for one in series for point in one.points]
        ends = [value for one in series for value in (*one.low, *one.high)]
        return cls(x, y, value_range([a for a, _ in points], x), value_range([*(b for _, b in points), *ends], y))

    def wider(self) -> _Frame:
        """The same with room around the outermost points."""
        return replace(self, x_range=_wider(self.x_range, self.x.log), y_range=_wider(self.y_range, self.y.log))

    def kept(self, one: Series) -> list[tuple[float, float]]:
        """The points that can be shown: finite, and above zero where the axis is of logarithms."""
        return [
            (a, b)
            for a, b in one.points
            if math.isfinite(a) and math.isfinite(b) and (a > 0 or not self.x.log) and (b > 0 or not self.y.log)
        ]

    def place(self, a: float, b: float) -> tuple[float, float]:
        across = share_of(a, self.x_range, self.x.log)
        up = share_of(b, self.y_range, self.y.log)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def drawn(self) -> str:
        """Grid, ticks and labels."""
        parts = []
        marks = self.x.ticks or {value: short(value) for value in ticks(self.x_range, self.x.log)}
        for value, name in marks.items():
            a, _ = self.place(value, self.y_range[0])
            parts.append(_rule(a, TOP, a, HEIGHT - BOTTOM))
            parts.append(_word(a, HEIGHT - BOTTOM + 16, name, "middle"))
        for value in ticks(self.y_range, self.y.log):
            _, b = self.place(self.x_range[0], value)
            parts.append(_rule(LEFT, b, WIDTH - RIGHT, b))
            parts.append(_word(LEFT - 6, b + 4, short(value), "end"))
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(_word(middle, HEIGHT - 10, self.x.label, "middle"))
        parts.append(_word(LEFT - 46, TOP - 10, self.y.label, "start"))
        return "".join(parts)


def _wider(ends: tuple[float, float], log: bool) -> tuple[float, float]:
    low, high = ends
    if log:
        room = (high / low) ** MARGIN
        return low / room, high * room
    return low - MARGIN * (high - low), high + MARGIN * (high - low)


def _band(frame: _Frame, one: Series, colour: str) -> str:
    upper = [frame.place(a, high) for (a, _), high in zip(one.points, one.high, strict=True)]
    lower = [frame.place(a, low) for (a, _), low in zip(one.points, one.low, strict=True)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*upper, *reversed(lower)])
    return f'<polygon points="{path}" fill="{colour}" opacity="0.15"/>'


def _look(name: str, number: int, order: Sequence[str]) -> tuple[str, str]:
    """Colour and dashes of a series: by its place in `order`, or by its number."""
    if order and name not in order:
        # What is no model, such as the best possible, is drawn as none.
        return "currentColor", ' stroke-dasharray="2 3"'
    place = order.index(name) if name in order else number
    return COLOURS[place % len(COLOURS)], ' stroke-dasharray="5 3"' if place >= len(COLOURS) else ""


def _legend(names: Sequence[str], order: Sequence[str]) -> list[str]:
    parts = []
    for number, name in enumerate(names):
        y = TOP + 8 + 18 * number
        colour, dash = _look(name, number, order)
        x = WIDTH - RIGHT + 14
        parts.append(f'<path d="M{x} {y}h18" stroke="{colour}" stroke-width="3"{dash}/>')
        parts.append(_word(x + 24, y + 4, name if len(name) <= 17 else name[:16] + "\u2026", "start"))
    return parts


def _rule(a: float, b: float, c: float, d: float) -> str:
    return f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" stroke="currentColor" opacity="0.15"/>'


def _word(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">{escape(text)}</text>'


def _svg(title: str, content: str, height: float) -> str:
    name = escape(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{name}" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>{name}</title>'
        f'<text x="{WIDTH / 2}" y="14" text-anchor="middle" font-weight="600" fill="currentColor">{name}</text>'
        f"{content}</svg>"
    )
