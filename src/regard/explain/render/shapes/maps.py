"""Who looks at whom in a picture: a heat map with its scale, and two rows of tokens joined by bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.charts.drawing import BODY, FAINT, INK, MARGIN, RULE, SMALL, Box, Drawing, Grid, Look, Path, Words
from regard.charts.plot import COLOURS
from regard.explain.render.number import four
from regard.explain.render.shade import MASKED, Cells, cells_of, colours, reach, shares
from regard.explain.view import Heat, Links
from regard.terminal.label import label

MOST_CELLS = 400
LARGEST, TALLEST = 84, 960
AROUND = 150  # the height of what is above and below a map: the names of its columns and its scale
VALUE_ROOM, VALUE_HEIGHT = 46, 20  # a cell this large holds a value of two digits
GAP = 10
CLOSEST = 14
STEPS = (2, 5, 10, 20, 50, 100)
MOST_LINKS, FAINTEST = 400, 0.02
BAND = 190
APART = 26
SMALLEST = 12.0


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
    left = min(240.0, max(SMALL.measure(text) for text in (*rows, label(panel.row_name)))) + GAP
    wide = min(LARGEST, (drawing.room - left) / n_columns)
    tall = min(wide, LARGEST / 2, TALLEST / n_rows)
    enough = min(tall, VALUE_HEIGHT)
    tall = min(tall, max(SMALLEST, drawing.tallest - AROUND) / n_rows)
    drawing.is_partial |= tall < enough
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
    if wide >= VALUE_ROOM and tall >= VALUE_HEIGHT:
        _values(drawing, place, shown.weights, share)
    drawing.y = place.y + tall * n_rows + GAP
    for text in shown.said:
        drawing.paragraph(text, SMALL)
    _scale(panel, drawing, bool(np.isnan(share).any()))


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


def _scale(panel: Heat, drawing: Drawing, masked: bool) -> None:
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


def links(panel: Links, drawing: Drawing) -> None:
    """Draw both rows, the bands between them, and the pairs that count as aligned."""
    weights = np.nan_to_num(np.asarray(panel.weights, dtype=np.float64))
    names = [label(name) for name in (panel.upper_name, panel.lower_name)]
    left = max((SMALL.measure(name) + 20 for name in names if name), default=0.0)
    look, turned = _letters([panel.upper, panel.lower], drawing.room - left)
    upper, lower = (_centres(tokens, look, turned, (left, drawing.room)) for tokens in (panel.upper, panel.lower))
    tall = max([look.measure(label(text)) for text in (*panel.upper, *panel.lower)] or [0.0]) if turned else look.size
    tall = min(tall, 160.0)
    top = drawing.y + tall + 10
    bottom = top + BAND
    _tokens(drawing, names[0], panel.upper, upper, top - 8, (look, turned, "start"))
    _tokens(drawing, names[1], panel.lower, lower, bottom + (8 if turned else 6 + tall), (look, turned, "end"))
    aligned = {(int(i), int(j)) for i, j in panel.pairs}
    order = [(float(weights[i, j]), int(i), int(j)) for i, j in np.argwhere(weights >= FAINTEST)]
    for weight, i, j in sorted(order)[-MOST_LINKS:]:
        strong = (i, j) in aligned if aligned else weight >= weights[i].max()
        band = _curve((lower[i], bottom), (upper[j], top))
        drawing.add(
            Path(band, COLOURS[0] if strong else FAINT, 1.5 + 9 * weight, opacity=0.15 + 0.7 * min(1.0, weight))
        )
    drawing.y = bottom + tall + 24
    if len(order) > MOST_LINKS:
        drawing.paragraph(f"{MOST_LINKS} of {len(order)} links, the strongest", SMALL)
    if panel.pairs:
        pairs = " ".join(f"{j}-{i}" for i, j in panel.pairs)
        drawing.paragraph(f"pairs ({names[0] or 'upper'}-{names[1] or 'lower'}, from 0): {pairs}", SMALL)


def _letters(rows: Sequence[Sequence[str]], room: float) -> tuple[Look, bool]:
    """The largest letters in which both rows fit, and whether tokens are turned for that."""
    longest = max(sum(BODY.measure(label(text)) + APART for text in tokens) for tokens in rows)
    size = BODY.size * min(1.0, room / max(1.0, longest))
    if size >= SMALLEST:
        return replace(BODY, size=size), False
    most = max(len(tokens) for tokens in rows)
    return replace(BODY, size=min(SMALL.size, max(6.0, 0.8 * room / most))), True


def _centres(tokens: Sequence[str], look: Look, turned: bool, ends: tuple[float, float]) -> list[float]:
    """The middle of each token, blanks shared out evenly over the row."""
    left, room = ends[0], ends[1] - ends[0]
    if turned:
        return [MARGIN + left + room * (number + 0.5) / len(tokens) for number in range(len(tokens))]
    wide = [look.measure(label(text)) for text in tokens]
    blank = min(90.0, (room - sum(wide)) / max(1, len(tokens)))
    places, x = [], MARGIN + left
    for one in wide:
        places.append(x + one / 2)
        x += one + blank
    return places


def _tokens(
    drawing: Drawing, name: str, tokens: Sequence[str], centres: list[float], y: float, style: tuple[Look, bool, str]
) -> None:
    look, turned, anchor = style
    if name:
        drawing.add(Words(MARGIN, y, name, replace(SMALL, bold=True)))
    for text, x in zip(tokens, centres, strict=True):
        if turned:
            shown = drawing.label(text, look, 160)
            drawing.add(Words(x + 0.35 * look.size, y, shown, look, anchor, turned=True))
        else:
            drawing.add(Words(x, y, label(text), look, "middle"))


def _curve(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """From one token to the other, leaving and arriving upright."""
    along = np.linspace(0.0, 1.0, 25)
    across = along * along * (3 - 2 * along)
    (a, b), (c, d) = start, end
    return [(float(a + (c - a) * s), float(b + (d - b) * t)) for t, s in zip(along, across, strict=True)]
