"""A heat map in a picture: square cells with labels at two sides, values where they fit, and its scale below."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from regard.charts.drawing import FAINT, INK, MARGIN, ROOM, RULE, SMALL, Box, Drawing, Grid, Look, Path, Words
from regard.explain.render.number import four
from regard.explain.render.shade import MASKED, Cells, cells_of, colours, reach, shares
from regard.explain.view import Heat
from regard.terminal.label import label

MOST_CELLS = 400
LARGEST, TALLEST = 84, 960
VALUE_ROOM = 46  # a cell this wide holds a value of two digits
GAP = 10
CLOSEST = 14
STEPS = (2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class _Place:
    """Where the cells are, and their size."""

    x: float
    y: float
    wide: float
    tall: float


def heat(panel: Heat, drawing: Drawing) -> None:
    """Draw a heat map."""
    if not np.size(panel.weights):
        drawing.paragraph("(no weights)", SMALL)
        return
    shown = cells_of(panel, MOST_CELLS, MOST_CELLS)
    n_rows, n_columns = shown.weights.shape
    few = n_rows == len(panel.weights)
    rows = [label(text) for text in shown.rows] if few and shown.rows else [str(place) for place in shown.row_places]
    columns = [label(text) for text in shown.columns] or [str(place) for place in shown.column_places]
    left = min(240.0, max(SMALL.measure(text) for text in rows)) + GAP
    wide = min(LARGEST, (ROOM - left) / n_columns)
    tall = min(wide, LARGEST / 2, TALLEST / n_rows)
    wide = wide if wide > VALUE_ROOM else min(wide, 2 * tall)
    across = all(SMALL.measure(text) < wide - 4 for text in columns)
    above = SMALL.size if across else min(160.0, max(SMALL.measure(text) for text in columns))
    if panel.column_name:
        drawing.add(Words(MARGIN + left, drawing.y + SMALL.size, label(panel.column_name), replace(SMALL, bold=True)))
        drawing.y += 1.5 * SMALL.size
    place = _Place(MARGIN + left, drawing.y + above + GAP, wide, tall)
    if panel.row_name:
        name = Words(MARGIN + left - GAP, place.y - GAP, label(panel.row_name), replace(SMALL, bold=True), "end")
        drawing.add(name)
    share = shares(panel, shown.weights)
    drawing.add(Grid(place.x, place.y, wide * n_columns, tall * n_rows, colours(share)))
    _frame(drawing, place, shown)
    _sides(drawing, place, rows, columns, across)
    if wide >= VALUE_ROOM and tall >= 20:
        _values(drawing, place, shown.weights, share)
    drawing.y = place.y + tall * n_rows + GAP
    for text in shown.said:
        drawing.paragraph(text, SMALL)
    _legend(panel, drawing, bool(np.isnan(share).any()))


def _frame(drawing: Drawing, place: _Place, shown: Cells) -> None:
    """A rule around all cells, and between them where they are large."""
    n_rows, n_columns = shown.weights.shape
    right, bottom = place.x + n_columns * place.wide, place.y + n_rows * place.tall
    every = 1 if min(place.wide, place.tall) >= 12 else max(n_rows, n_columns)
    inner = {"colour": "#ffffff", "width": 1.0}
    for column in range(every, n_columns, every):
        x = place.x + column * place.wide
        drawing.add(Path([(x, place.y), (x, bottom)], **inner))
    for row in range(every, n_rows, every):
        y = place.y + row * place.tall
        drawing.add(Path([(place.x, y), (right, y)], **inner))
    corners = [(place.x, place.y), (right, place.y), (right, bottom), (place.x, bottom), (place.x, place.y)]
    drawing.add(Path(corners, RULE, 1.5))


def _sides(drawing: Drawing, place: _Place, rows: list[str], columns: list[str], across: bool) -> None:
    """Labels, every so many where all would run into each other."""
    every, look = _spaced(place.tall)
    for row in range(0, len(rows), every):
        y = place.y + (row + 0.5) * place.tall + 0.35 * look.size
        drawing.add(Words(place.x - GAP, y, drawing.label(rows[row], look, 240), look, "end"))
    every, look = (1, replace(SMALL, colour=INK)) if across else _spaced(place.wide)
    for column in range(0, len(columns), every):
        x = place.x + (column + 0.5) * place.wide
        text = drawing.label(columns[column], look, 160)
        if across:
            drawing.add(Words(x, place.y - GAP, text, look, "middle"))
        else:
            drawing.add(Words(x + 0.35 * look.size, place.y - GAP, text, look, turned=True))


def _spaced(size: float) -> tuple[int, Look]:
    """Of how many cells one has a label, and in which letters."""
    if size >= CLOSEST:
        return 1, replace(SMALL, size=min(SMALL.size, max(12.0, 0.85 * size)), colour=INK)
    return next((step for step in STEPS if step * size >= 3 * CLOSEST), STEPS[-1]), replace(
        SMALL, size=14.0, colour=INK
    )


def _values(drawing: Drawing, place: _Place, weights: np.ndarray, share: np.ndarray) -> None:
    for (row, column), weight in np.ndenumerate(weights):
        # A cell that is empty, as one that may not be seen, says so best by being empty.
        if np.isnan(weight) or weight == 0:
            continue
        text = f"{weight:.2f}"
        ink = FAINT if not float(text) else INK if abs(share[row, column]) < 0.5 else "#ffffff"
        x, y = place.x + (column + 0.5) * place.wide, place.y + (row + 0.5) * place.tall
        drawing.add(Words(x, y + 5, text, Look(15, ink), "middle"))


def _legend(panel: Heat, drawing: Drawing, masked: bool) -> None:
    """The scale with its ends."""
    signed = panel.low < 0
    ends = (-reach(panel), reach(panel)) if signed else (panel.low, panel.high)
    name, low, high = label(panel.scale), four(ends[0]), four(ends[1])
    x, y = float(MARGIN), drawing.y + 18
    drawing.add(Words(x, y, f"{name}  {low}", SMALL))
    x += SMALL.measure(f"{name}  {low}") + GAP
    drawing.add(Grid(x, y - 14, 240, 18, colours(np.linspace(-1.0 if signed else 0.0, 1.0, 61)[None])))
    drawing.add(Words(x + 240 + GAP, y, high, SMALL))
    if masked:
        x += 240 + 2 * GAP + SMALL.measure(high) + 20
        drawing.add(Box(x, y - 14, 18, 18, MASKED), Words(x + 26, y, "masked", SMALL))
    drawing.y += 36
