"""A matrix in a picture: its equation, brackets, and every number in letters of one width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.charts.drawing import FAINT, INK, MARGIN, MONO, ROOM, SMALL, Box, Drawing, Path, Words
from regard.explain.render.number import aligned_numbers, first_and_last
from regard.explain.render.shapes.note import equation
from regard.explain.view import Numbers
from regard.terminal.label import label

MOST_ROWS = 40
STEP, BETWEEN = 32, 28
MARK = "#ffe9a8"
LABEL_ROOM = 200.0


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
    columns, widths = _columns(panel, values, [row for row in rows if row is not None], ROOM - left - 30)
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
