"""Words of a picture: a paragraph, an equation on a ground of its own, or an answer beside a bar."""

from __future__ import annotations

from regard.charts.axis import COLOURS
from regard.charts.drawing import GROUND, MARGIN, MONO, ROOM, Box, Drawing, Words
from regard.explain.view import Note
from regard.terminal.label import prose, wrapped

PADDING = 14


def note(panel: Note, drawing: Drawing) -> None:
    """Draw a text."""
    if panel.style == "equation":
        equation(panel.text, drawing)
    elif panel.style == "answer":
        top = drawing.y
        drawing.paragraph(panel.text, indent=24)
        drawing.add(Box(MARGIN, top, 6, drawing.y - top, COLOURS[0]))
    else:
        drawing.paragraph(panel.text)


def equation(text: str, drawing: Drawing) -> None:
    """Draw what was calculated, in letters of one width."""
    lines = wrapped(prose(text), ROOM - 2 * PADDING, MONO.measure)
    step = 1.4 * MONO.size
    height = step * len(lines) + PADDING
    wide = max(MONO.measure(line) for line in lines) + 2 * PADDING
    drawing.add(Box(MARGIN, drawing.y, wide, height, GROUND))
    for number, line in enumerate(lines):
        drawing.add(Words(MARGIN + PADDING, drawing.y + PADDING / 2 + MONO.size * 1.05 + number * step, line, MONO))
    drawing.y += height + 8
