"""Where the points of curves lie in their box, for every renderer alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.charts.axis import Axis, share_of, value_range
from regard.explain.view import Curves

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """Lines as shares of a box, from 0 to 1 to the right and up. across, up: what its sides stand for."""

    lines: Mapping[str, Points]
    across: tuple[float, float]
    up: tuple[float, float]


def plotted(panel: Curves) -> Plot | None:
    """The box around all points that can be shown: finite, and above zero where an axis is of logarithms."""
    kept = {
        name: [(float(a), float(b)) for a, b in points if _fits(a, b, panel)] for name, points in panel.lines.items()
    }
    points = [point for line in kept.values() for point in line]
    if not points:
        return None
    across = value_range([a for a, _ in points], Axis("", log=panel.x_log))
    up = value_range([b for _, b in points], Axis("", log=panel.y_log))
    shares = {
        name: [(share_of(a, across, panel.x_log), share_of(b, up, panel.y_log)) for a, b in line]
        for name, line in kept.items()
    }
    return Plot(shares, across, up)


def axis_name(name: str, log: bool) -> str:
    return f"{name} (logarithmic)" if log else name


def _fits(a: float, b: float, panel: Curves) -> bool:
    return math.isfinite(a) and math.isfinite(b) and (a > 0 or not panel.x_log) and (b > 0 or not panel.y_log)
