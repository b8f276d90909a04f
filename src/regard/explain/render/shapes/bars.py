"""Bars of a picture, from zero on; negative ones go to the left in another colour."""

from __future__ import annotations

import math

from regard.charts.axis import COLOURS
from regard.charts.drawing import BODY, FAINT, MARGIN, ROOM, SMALL, Box, Drawing, Path, Words
from regard.explain.render.number import four
from regard.explain.view import Bars
from regard.terminal.label import label

MOST = 60
TALL, GAP = 28, 10


def bars(panel: Bars, drawing: Drawing) -> None:
    """Draw a bar for each name, with its value."""
    names, values = list(panel.names)[:MOST], [float(value) for value in panel.values][:MOST]
    left = min(360.0, max((BODY.measure(label(name)) for name in names), default=0.0)) + 16
    finite = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    beside = 110.0
    start = MARGIN + left + (beside if low < 0 else 0)
    room = min(760.0, MARGIN + ROOM - beside - start)
    unit = room / (high - low) if high > low else 0.0
    zero = start - low * unit
    top = drawing.y
    for name, value in zip(names, values, strict=True):
        middle = drawing.y + TALL / 2 + 7
        drawing.add(Words(MARGIN + left - 16, middle, drawing.label(name, BODY, 360), BODY, "end"))
        long = abs(value) * unit if math.isfinite(value) else 0.0
        x = zero - long if value < 0 else zero
        if long:
            drawing.add(Box(x, drawing.y, max(1.5, long), TALL, COLOURS[1] if value < 0 else COLOURS[0]))
        beyond = (x - 8, "end") if value < 0 else (x + long + 8, "start")
        drawing.add(Words(beyond[0], middle, four(value), BODY, beyond[1]))
        drawing.y += TALL + GAP
    drawing.add(Path([(zero, top - 4), (zero, drawing.y - GAP + 4)], FAINT, 1.5))
    if panel.unit:
        drawing.paragraph(panel.unit, SMALL, indent=zero - MARGIN)
    if len(panel.names) > MOST:
        drawing.paragraph(f"{MOST} of {len(panel.names)} bars, the first", SMALL)
