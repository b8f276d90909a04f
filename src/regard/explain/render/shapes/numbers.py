"""Numbers and words in a picture: a matrix in brackets below its equation, bars from zero on, a table, a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.charts.drawing import (
    BODY,
    FAINT,
    GROUND,
    INK,
    MARGIN,
    MONO,
    RULE,
    SMALL,
    Box,
    Drawing,
    Look,
    Path,
    Words,
)
from regard.charts.plot import COLOURS
from regard.explain.render.number import aligned_numbers, first_and_last, four
from regard.explain.view import Bars, Listing, Note, Numbers
from regard.terminal.label import label, prose, wrapped

MOST_ROWS = 40
STEP, BETWEEN = 32, 28
MARK = "#ffe9a8"
LABEL_ROOM = 200.0
MOST_BARS = 60
BAR, GAP = 28, 10
MOST_LISTED = 60
NARROWEST, COLUMN_GAP = 60.0, 32.0
HEAD = Look(18, FAINT, bold=True)
PADDING = 14


def numbers(panel: Numbers, drawing: Drawing) -> None:
    """Draw a matrix; marked cells have a ground of their own."""
    if panel.equation:
        equation(panel.equation, drawing)
    values = np.atleast_2d(np.asarray(panel.values, dtype=np.float64))
    if not values.size:
        drawing.paragraph("(no numbers)", SMALL)
        return
    rows = first_and_last(len(values), MOST_ROWS)
    left = min(LABEL_ROOM, max((SMALL.measure(label(text)) for text in panel.rows), default=0.0)) + 30
    columns, widths = _columns(panel, values, [row for row in rows if row is not None], drawing.room - left - 30)
    top = drawing.y + (1.5 * SMALL.size if panel.columns else 0) + 6
    x = MARGIN + left
    for column, wide in zip(columns, widths, strict=True):
        if column is None:
            _column(drawing, (x, top), ["…"] * len(rows), frozenset())
        else:
            if panel.columns:
                head = drawing.label(panel.columns[column], SMALL, wide)
                drawing.add(Words(x, top - 10, head, SMALL))
            texts = iter(aligned_numbers(values[[row for row in rows if row is not None], column]))
            marked = frozenset(row for row, c in panel.marked if c == column)
            shown = ["…" if row is None else next(texts) for row in rows]
            _column(drawing, (x, top), shown, frozenset(n for n, row in enumerate(rows) if row in marked))
        x += wide + BETWEEN
    right, bottom = x - BETWEEN, top + STEP * len(rows)
    _brackets(drawing, MARGIN + left, top, right, bottom)
    if panel.rows:
        _row_names(drawing, panel.rows, rows, (MARGIN + left - 26, top))
    drawing.y = bottom + 12
    shown = (sum(row is not None for row in rows), sum(column is not None for column in columns))
    if shown != values.shape:
        drawing.is_partial = True
        drawing.paragraph(f"{shown[0]} x {shown[1]} of {values.shape[0]} x {values.shape[1]} numbers", SMALL)


def _columns(
    panel: Numbers, values: np.ndarray, rows: Sequence[int], room: float
) -> tuple[list[int | None], list[float]]:
    """The columns that fit, and how wide each is."""
    count = values.shape[1]
    most = min(count, int(room // (BETWEEN + MONO.measure("0"))))
    while True:
        kept = first_and_last(count, most)
        widths = [_wide(panel, values, rows, column) for column in kept]
        if sum(widths) + BETWEEN * (len(widths) - 1) <= room or most == 1:
            return kept, widths
        most -= 1


def _wide(panel: Numbers, values: np.ndarray, rows: Sequence[int], column: int | None) -> float:
    if column is None:
        return MONO.measure("…")
    head = min(LABEL_ROOM, SMALL.measure(label(panel.columns[column]))) if panel.columns else 0.0
    return max(head, MONO.measure(aligned_numbers(values[rows, column])[0]))


def _column(drawing: Drawing, corner: tuple[float, float], texts: Sequence[str], marked: frozenset[int]) -> None:
    x, top = corner
    for number, padded in enumerate(texts):
        text = padded.strip()
        start = x + MONO.measure(padded[: len(padded) - len(padded.lstrip())])
        y = top + number * STEP
        if number in marked:
            drawing.add(Box(start - 6, y + 2, MONO.measure(text) + 12, STEP - 4, MARK))
        look = replace(MONO, bold=number in marked, colour=FAINT if text in (".", "…") else INK)
        drawing.add(Words(start, y + 0.5 * STEP + 7, text, look))


def _brackets(drawing: Drawing, left: float, top: float, right: float, bottom: float) -> None:
    for x, inward in ((left - 16, 8), (right + 16, -8)):
        drawing.add(Path([(x + inward, top), (x, top), (x, bottom), (x + inward, bottom)], INK, 2))


def _row_names(drawing: Drawing, names: Sequence[str], rows: Sequence[int | None], corner: tuple[float, float]) -> None:
    x, top = corner
    for number, row in enumerate(rows):
        if row is not None:
            text = drawing.label(names[row], SMALL, LABEL_ROOM)
            drawing.add(Words(x, top + (number + 0.5) * STEP + 6, text, SMALL, "end"))


def bars(panel: Bars, drawing: Drawing) -> None:
    """Draw a bar for each name, with its value."""
    names, values = list(panel.names)[:MOST_BARS], [float(value) for value in panel.values][:MOST_BARS]
    most = min(360.0, 0.4 * drawing.room)
    left = min(most, max((BODY.measure(label(name)) for name in names), default=0.0)) + 16
    finite = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    beside = 110.0
    start = MARGIN + left + (beside if low < 0 else 0)
    room = min(760.0, MARGIN + drawing.room - beside - start)
    unit = room / (high - low) if high > low else 0.0
    zero = start - low * unit
    top = drawing.y
    for name, value in zip(names, values, strict=True):
        middle = drawing.y + BAR / 2 + 7
        drawing.add(Words(MARGIN + left - 16, middle, drawing.label(name, BODY, most), BODY, "end"))
        long = abs(value) * unit if math.isfinite(value) else 0.0
        x = zero - long if value < 0 else zero
        if long:
            drawing.add(Box(x, drawing.y, max(1.5, long), BAR, COLOURS[1] if value < 0 else COLOURS[0]))
        beyond = (x - 8, "end") if value < 0 else (x + long + 8, "start")
        drawing.add(Words(beyond[0], middle, four(value), BODY, beyond[1]))
        drawing.y += BAR + GAP
    drawing.add(Path([(zero, top - 4), (zero, drawing.y - GAP + 4)], FAINT, 1.5))
    if panel.unit:
        drawing.paragraph(panel.unit, SMALL, indent=zero - MARGIN)
    if len(panel.names) > MOST_BARS:
        drawing.paragraph(f"{MOST_BARS} of {len(panel.names)} bars, the first", SMALL)


def listing(panel: Listing, drawing: Drawing) -> None:
    """Draw a table with rules between its rows."""
    if not panel.columns:
        return
    names = [label(name.rstrip("#")) for name in panel.columns]
    numeric = [name.endswith("#") for name in panel.columns]
    rows = [[_text(cell) for cell in row] for row in panel.rows[:MOST_LISTED]]
    widths = [
        max([HEAD.measure(name), *(BODY.measure(row[place]) for row in rows)]) for place, name in enumerate(names)
    ]
    room = drawing.room - COLUMN_GAP * (len(names) - 1)
    while sum(widths) > room and max(widths) > NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] = max(NARROWEST, widths[widest] - max(1.0, (sum(widths) - room) / 2))
    _listed(drawing, names, widths, numeric, HEAD)
    for row in rows:
        drawing.add(Path([(MARGIN, drawing.y), (MARGIN + sum(widths) + drawing.room - room, drawing.y)], RULE, 1))
        _listed(drawing, row, widths, numeric, BODY)
    if len(panel.rows) > MOST_LISTED:
        drawing.paragraph(f"{MOST_LISTED} of {len(panel.rows)} rows, the first", SMALL)


def _text(cell: str | float | None) -> str:
    if cell is None:
        return ""
    return label(cell) if isinstance(cell, str) else four(float(cell))


def _listed(
    drawing: Drawing, texts: Sequence[str], widths: Sequence[float], numeric: Sequence[bool], look: Look
) -> None:
    x, most = float(MARGIN), 1
    for text, wide, right in zip(texts, widths, numeric, strict=True):
        lines = wrapped(text, wide + 1, look.measure)
        most = max(most, len(lines))
        for number, line in enumerate(lines):
            y = drawing.y + 8 + look.size + number * 1.3 * look.size
            drawing.add(Words(x + wide if right else x, y, line, look, "end" if right else "start"))
        x += wide + COLUMN_GAP
    drawing.y += 16 + most * 1.3 * look.size


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
    lines = wrapped(prose(text), drawing.room - 2 * PADDING, MONO.measure)
    step = 1.4 * MONO.size
    height = step * len(lines) + PADDING
    wide = max(MONO.measure(line) for line in lines) + 2 * PADDING
    drawing.add(Box(MARGIN, drawing.y, wide, height, GROUND))
    for number, line in enumerate(lines):
        drawing.add(Words(MARGIN + PADDING, drawing.y + PADDING / 2 + MONO.size * 1.05 + number * step, line, MONO))
    drawing.y += height + 8
