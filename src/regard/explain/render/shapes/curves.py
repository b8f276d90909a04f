"""Lines over an axis in a picture, with a grid, a legend and bands of which the inner ones are darker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from regard.charts.drawing import DASHES, INK, MARGIN, SMALL, Area, Box, Drawing, Path, Words
from regard.charts.plot import COLOURS, Axis, Frame, plotted
from regard.explain.view import Curves
from regard.terminal.label import label

LEFT, WIDE, TALL = 90, 820, 380
LEGEND_ROOM, LEGEND_GAP = 230, 44
AROUND = 110  # the height of what is above and below a plot: what its sides are
FLAT = 220  # a plot less high than this shows little
SHADE = 0.2  # of a band
FEW = 12  # points that are marked one by one


def curves(panel: Curves, drawing: Drawing) -> None:
    """Draw a plot."""
    across = Axis(panel.x, panel.x_log, marks=tuple(panel.x_ticks))
    plot, lines = plotted(panel.lines, across, Axis(panel.y, panel.y_log), panel.bands)
    if not any(lines.values()):
        drawing.paragraph("(no points)", SMALL)
        return
    if panel.y:
        drawing.paragraph(plot.y.full_label, SMALL)
    wide = min(WIDE, drawing.room - LEFT - LEGEND_ROOM - LEGEND_GAP)
    frame = Frame(plot, MARGIN + LEFT, drawing.y + 8, wide, min(TALL, max(LEFT, drawing.tallest - AROUND)))
    drawing.is_partial |= frame.height < FLAT
    frame.draw(drawing)
    x, y = frame.left + frame.width, frame.top
    fill = COLOURS[_place(panel.around, lines) % len(COLOURS)]
    look = replace(SMALL, colour=INK)
    for number, (name, band) in enumerate(panel.bands.items()):
        below, above = ([frame.place(a, edge[side]) for a, *edge in band] for side in (0, 1))
        drawing.add(Area([*below, *reversed(above)], fill, SHADE))
        row = y + 10 + 28 * (len(lines) + number)
        corners = [(x + 24, row - 8), (x + 54, row - 8), (x + 54, row + 8), (x + 24, row + 8)]
        # Those within others lie on them, and their sample is as dark.
        drawing.add(*[Area(corners, fill, SHADE)] * (number + 1))
        drawing.add(Words(x + 64, row + 6, drawing.label(name, look, LEGEND_ROOM), look))
    for number, (name, line) in enumerate(lines.items()):
        colour, dashes = COLOURS[number % len(COLOURS)], DASHES if number >= len(COLOURS) else ()
        points = [frame.place(*point) for point in line]
        if len(points) > 1:
            drawing.add(Path(points, colour, 3, dashes))
        if len(points) <= FEW:
            drawing.add(*(Box(a - 4, b - 4, 8, 8, colour) for a, b in points))
        if name:
            row = y + 10 + 28 * number
            drawing.add(Path([(x + 24, row), (x + 54, row)], colour, 4, dashes))
            drawing.add(Words(x + 64, row + 6, drawing.label(name, look, LEGEND_ROOM), look))
    drawing.y = max(y + frame.height + 36, y + 28 * (len(lines) + len(panel.bands)))
    if panel.x:
        drawing.add(Words(frame.left + frame.width / 2, drawing.y + 14, label(plot.x.full_label), SMALL, "middle"))
        drawing.y += 28


def _place(name: str, lines: Mapping[str, object]) -> int:
    return list(lines).index(name) if name in lines else 0
