"""Lines over an axis in a picture, with a grid and a legend."""

from __future__ import annotations

from dataclasses import replace

from regard.charts.axis import COLOURS, share_of, short, ticks
from regard.charts.drawing import INK, MARGIN, RULE, SMALL, Box, Drawing, Path, Words
from regard.explain.render.plot import Plot, axis_name, plotted
from regard.explain.view import Curves
from regard.terminal.label import label

LEFT, WIDE, TALL = 90, 820, 380
LEGEND_ROOM = 230
FEW = 12  # points that are marked one by one


def curves(panel: Curves, drawing: Drawing) -> None:
    """Draw a plot."""
    plot = plotted(panel)
    if plot is None:
        drawing.paragraph("(no points)", SMALL)
        return
    if panel.y:
        drawing.paragraph(axis_name(panel.y, panel.y_log), SMALL)
    x, y = float(MARGIN + LEFT), drawing.y + 8
    _axes(panel, plot, drawing, x, y)
    for number, (name, line) in enumerate(plot.lines.items()):
        colour, dashed = COLOURS[number % len(COLOURS)], number >= len(COLOURS)
        points = [(x + a * WIDE, y + (1 - b) * TALL) for a, b in line]
        if len(points) > 1:
            drawing.add(Path(points, colour, 3, dashed))
        if len(points) <= FEW:
            drawing.add(*(Box(a - 4, b - 4, 8, 8, colour) for a, b in points))
        if name:
            row = y + 10 + 28 * number
            drawing.add(Path([(x + WIDE + 24, row), (x + WIDE + 54, row)], colour, 4, dashed))
            look = replace(SMALL, colour=INK)
            drawing.add(Words(x + WIDE + 64, row + 6, drawing.label(name, look, LEGEND_ROOM), look))
    drawing.y = max(y + TALL + 36, y + 28 * len(plot.lines))
    if panel.x:
        drawing.add(Words(x + WIDE / 2, drawing.y + 14, label(axis_name(panel.x, panel.x_log)), SMALL, "middle"))
        drawing.y += 28


def _axes(panel: Curves, plot: Plot, drawing: Drawing, x: float, y: float) -> None:
    for value in ticks(plot.across, panel.x_log):
        a = x + share_of(value, plot.across, panel.x_log) * WIDE
        drawing.add(Path([(a, y), (a, y + TALL)], RULE, 1))
        drawing.add(Words(a, y + TALL + 24, short(value), SMALL, "middle"))
    for value in ticks(plot.up, panel.y_log):
        b = y + (1 - share_of(value, plot.up, panel.y_log)) * TALL
        drawing.add(Path([(x, b), (x + WIDE, b)], RULE, 1))
        drawing.add(Words(x - 10, b + 6, short(value), SMALL, "end"))
