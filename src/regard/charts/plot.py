"""Where the points of lines lie in their box, for every back end alike, and the box with its grid in a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from regard.charts.axis import Axis, share_of, short, ticks, value_range
from regard.charts.drawing import RULE, SMALL, Drawing, Look, Path, Words

Points = Sequence[tuple[float, float]]
MARGIN = 0.06


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


def plotted(lines: Mapping[str, Points], x: Axis, y: Axis) -> tuple[Plot, dict[str, Points]]:
    """What of lines can be shown, and the box around it; lines without a point are among them."""
    kept: dict[str, Points] = {name: shown(points, x, y) for name, points in lines.items()}
    return Plot.around([point for line in kept.values() for point in line], x, y), kept


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

    def draw(self, drawing: Drawing) -> None:
        """Draw the grid with what its lines stand for."""
        plot, bottom = self.plot, self.top + self.height
        marks = plot.x.ticks or {value: short(value) for value in ticks(plot.across, plot.x.log)}
        for value, name in marks.items():
            a, _ = self.place(value, plot.up[0])
            self._line(drawing, (a, self.top), (a, bottom))
            drawing.add(Words(a, bottom + 1.4 * self.look.size, name, self.look, "middle"))
        for value in ticks(plot.up, plot.y.log):
            _, b = self.place(plot.across[0], value)
            self._line(drawing, (self.left, b), (self.left + self.width, b))
            drawing.add(
                Words(self.left - 0.55 * self.look.size, b + 0.35 * self.look.size, short(value), self.look, "end")
            )

    def _line(self, drawing: Drawing, start: tuple[float, float], end: tuple[float, float]) -> None:
        drawing.add(Path([start, end], self.rule, 1, opacity=self.opacity))


def _wider(ends: tuple[float, float], log: bool) -> tuple[float, float]:
    low, high = ends
    if log:
        room = (high / low) ** MARGIN
        return low / room, high * room
    return low - MARGIN * (high - low), high + MARGIN * (high - low)
