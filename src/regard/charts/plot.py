"""Where the points of lines lie in their box, for every back end alike, and the box with its grid in a drawing.

Axes of pictures: what a side stands for, where a value lies on it, round values beside it, and colours of lines.

Colours are those of Okabe and Ito, which people who see colours differently can tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from regard.charts.drawing import RULE, SMALL, Drawing, Look, Path, Words

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8a8a", "#b8a800")
MOST_NAMES = 8
Points = Sequence[tuple[float, float]]
Band = Sequence[tuple[float, float, float]]  # x, low, high
MARGIN = 0.06
DIGITS, MOST_DIGITS = 3, 12


@dataclass(frozen=True)
class Axis:
    """What is shown along one side. names: of the values 0, 1, 2 and so on, where they are no numbers.

    marks: where which words are written, where that was chosen.
    """

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None
    names: tuple[str, ...] = ()
    marks: tuple[tuple[float, str], ...] = ()

    @property
    def full_label(self) -> str:
        """The label, and how the axis is divided where that is unusual."""
        return f"{self.label} (logarithmic)" if self.log else self.label

    @property
    def ticks(self) -> dict[float, str]:
        """Where the names stand; every so many of them where they are many."""
        if self.marks:
            return dict(self.marks)
        every = math.ceil(len(self.names) / MOST_NAMES)
        return {float(place): name for place, name in enumerate(self.names) if place % every == 0}


def short(value: float, digits: int = DIGITS) -> str:
    """A number in few letters.

    >>> short(1234567.0), short(0.0712), short(1000), short(0.5)
    ('1.23M', '0.0712', '1k', '0.5')
    """
    if not math.isfinite(value):
        return str(value)
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.{digits}g}{letter}"
    return f"{value:.{digits}g}"


def told_apart(values: Sequence[float]) -> list[str]:
    """The same of values that rise, in as few digits as tell neighbours apart.

    >>> told_apart([0.925, 0.9255, 0.926]), told_apart([0.5, 1.0])
    (['0.925', '0.9255', '0.926'], ['0.5', '1'])
    """
    found = [short(value) for value in values]
    for digits in range(DIGITS + 1, MOST_DIGITS + 1):
        if all(one != other for one, other in pairwise(found)):
            break
        found = [short(value, digits) for value in values]
    return found


def value_range(values: Sequence[float], axis: Axis) -> tuple[float, float]:
    """Lowest and highest value shown, never the same."""
    fit = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
    low = axis.low if axis.low is not None else min(fit, default=1.0 if axis.log else 0.0)
    high = axis.high if axis.high is not None else max(fit, default=low + 1.0)
    if high > low:
        return low, high
    return (low / 2, low * 2) if axis.log else (low - 0.5, low + 0.5)


def share_of(value: float, ends: tuple[float, float], log: bool) -> float:
    low, high = (math.log(end) for end in ends) if log else ends
    value = math.log(value) if log else value
    return min(1.0, max(0.0, (value - low) / (high - low)))


def ticks(ends: tuple[float, float], log: bool) -> list[float]:
    """Round values within the range, about five.

    >>> ticks((0.0, 10.0), False)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    >>> ticks((1.0, 1000.0), True)
    [1.0, 10.0, 100.0, 1000.0]
    >>> ticks((0.03, 0.7), True)
    [0.05, 0.1, 0.2, 0.5]
    """
    low, high = ends
    if log and high / low >= 10:
        powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
        if len(powers) < 3:
            between = (float(f"{part}e{power}") for power in range(powers[0] - 1, powers[-1] + 1) for part in (1, 2, 5))
            return [value for value in between if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        every = max(1, math.ceil(len(powers) / 6))
        return [10.0**power for power in powers if power % every == 0]
    rough = (high - low) / 5
    size = 10 ** math.floor(math.log10(rough))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda one: abs(one - rough))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(round(number * step, 12)) for number in range(first, last + 1)]


@dataclass(frozen=True)
class Plot:
    """The box around points. across, up: the lowest and highest value of its sides."""

    x: Axis
    y: Axis
    across: tuple[float, float]
    up: tuple[float, float]

    @classmethod
    def around(cls, points: Iterable[tuple[float, float]], x: Axis, y: Axis) -> Plot:
        """The box that holds all points."""
        held = list(points)
        return cls(x, y, value_range([a for a, _ in held], x), value_range([b for _, b in held], y))

    def wider(self) -> Plot:
        """The same with room around the outermost points."""
        return replace(self, across=_wider(self.across, self.x.log), up=_wider(self.up, self.y.log))

    def place(self, a: float, b: float) -> tuple[float, float]:
        """A point as shares of the box, from 0 to 1 to the right and up."""
        return share_of(a, self.across, self.x.log), share_of(b, self.up, self.y.log)


def shown(points: Points, x: Axis, y: Axis) -> list[tuple[float, float]]:
    """The points that can be shown: finite, and above zero where an axis is of logarithms."""
    return [
        (float(a), float(b))
        for a, b in points
        if math.isfinite(a) and math.isfinite(b) and (a > 0 or not x.log) and (b > 0 or not y.log)
    ]


def plotted(
    lines: Mapping[str, Points], x: Axis, y: Axis, bands: Mapping[str, Band] | None = None
) -> tuple[Plot, dict[str, Points]]:
    """What of lines can be shown, and the box around it and around bands; lines without a point are among them."""
    kept: dict[str, Points] = {name: shown(points, x, y) for name, points in lines.items()}
    edges = [(a, b) for band in (bands or {}).values() for a, low, high in band for b in (low, high)]
    return Plot.around([*(point for line in kept.values() for point in line), *shown(edges, x, y)], x, y), kept


@dataclass(frozen=True)
class Frame:
    """A plot in a box of a drawing, with a rule and a word for each of its ticks."""

    plot: Plot
    left: float
    top: float
    width: float
    height: float
    look: Look = SMALL
    rule: str = RULE
    opacity: float = 1.0

    def place(self, a: float, b: float) -> tuple[float, float]:
        """Where a point is in the drawing."""
        across, up = self.plot.place(a, b)
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def holds(self, x: float, y: float) -> bool:
        """Whether a place in the drawing is within the box."""
        return self.left < x < self.left + self.width and self.top < y < self.top + self.height

    def draw(self, drawing: Drawing) -> None:
        """Draw the grid with what its lines stand for."""
        plot = self.plot
        self.draw_across(drawing)
        values = ticks(plot.up, plot.y.log)
        for value, name in zip(values, told_apart(values), strict=True):
            _, b = self.place(plot.across[0], value)
            self._line(drawing, (self.left, b), (self.left + self.width, b))
            drawing.add(Words(self.left - 0.55 * self.look.size, b + 0.35 * self.look.size, name, self.look, "end"))

    def draw_across(self, drawing: Drawing) -> None:
        """Draw the upright lines with what they stand for; one whose words would touch those before it is left out."""
        plot, bottom, free = self.plot, self.top + self.height, -math.inf
        values = ticks(plot.across, plot.x.log)
        marks = plot.x.ticks or dict(zip(values, told_apart(values), strict=True))
        for value, name in marks.items():
            a, _ = self.place(value, plot.up[0])
            half = self.look.measure(name) / 2
            if a - half < free:
                continue
            free = a + half + 0.4 * self.look.size
            self._line(drawing, (a, self.top), (a, bottom))
            drawing.add(Words(a, bottom + 1.4 * self.look.size, name, self.look, "middle"))

    def _line(self, drawing: Drawing, start: tuple[float, float], end: tuple[float, float]) -> None:
        drawing.add(Path([start, end], self.rule, 1, opacity=self.opacity))


def _wider(ends: tuple[float, float], log: bool) -> tuple[float, float]:
    low, high = ends
    if log:
        room = (high / low) ** MARGIN
        return low / room, high * room
    return low - MARGIN * (high - low), high + MARGIN * (high - low)
