"""A table in a picture; long texts are folded within their column."""

from __future__ import annotations

from collections.abc import Sequence

from regard.charts.drawing import BODY, FAINT, MARGIN, ROOM, RULE, SMALL, Drawing, Look, Path, Words
from regard.explain.render.number import four
from regard.explain.view import Listing
from regard.terminal.label import label, wrapped

MOST_ROWS = 60
LEAST, BETWEEN = 60.0, 32.0
HEAD = Look(18, FAINT, bold=True)


def listing(panel: Listing, drawing: Drawing) -> None:
    """Draw a table with rules between its rows."""
    if not panel.columns:
        return
    names = [label(name.rstrip("#")) for name in panel.columns]
    numeric = [name.endswith("#") for name in panel.columns]
    rows = [[_text(cell) for cell in row] for row in panel.rows[:MOST_ROWS]]
    widths = [
        max([HEAD.measure(name), *(BODY.measure(row[place]) for row in rows)]) for place, name in enumerate(names)
    ]
    room = ROOM - BETWEEN * (len(names) - 1)
    while sum(widths) > room and max(widths) > LEAST:
        widest = widths.index(max(widths))
        widths[widest] = max(LEAST, widths[widest] - max(1.0, (sum(widths) - room) / 2))
    _row(drawing, names, widths, numeric, HEAD)
    for row in rows:
        drawing.add(Path([(MARGIN, drawing.y), (MARGIN + sum(widths) + ROOM - room, drawing.y)], RULE, 1))
        _row(drawing, row, widths, numeric, BODY)
    if len(panel.rows) > MOST_ROWS:
        drawing.paragraph(f"{MOST_ROWS} of {len(panel.rows)} rows, the first", SMALL)


def _text(cell: str | float | None) -> str:
    if cell is None:
        return ""
    return label(cell) if isinstance(cell, str) else four(float(cell))


def _row(drawing: Drawing, texts: Sequence[str], widths: Sequence[float], numeric: Sequence[bool], look: Look) -> None:
    x, most = float(MARGIN), 1
    for text, wide, right in zip(texts, widths, numeric, strict=True):
        lines = wrapped(text, wide + 1, look.measure)
        most = max(most, len(lines))
        for number, line in enumerate(lines):
            y = drawing.y + 8 + look.size + number * 1.3 * look.size
            drawing.add(Words(x + wide if right else x, y, line, look, "end" if right else "start"))
        x += wide + BETWEEN
    drawing.y += 16 + most * 1.3 * look.size
