"""Two rows of tokens in a picture, joined by bands: the wider and darker, the more one looks at the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.charts.axis import COLOURS
from regard.charts.drawing import BODY, FAINT, MARGIN, ROOM, SMALL, Drawing, Look, Path, Words
from regard.explain.view import Links
from regard.terminal.label import label

MOST, LEAST = 400, 0.02
TALL = 190
BETWEEN = 26
SMALLEST = 12.0


def links(panel: Links, drawing: Drawing) -> None:
    """Draw both rows, the bands between them, and the pairs that count as aligned."""
    weights = np.nan_to_num(np.asarray(panel.weights, dtype=np.float64))
    names = [label(name) for name in (panel.upper_name, panel.lower_name)]
    left = max((SMALL.measure(name) + 20 for name in names if name), default=0.0)
    look, turned = _look([panel.upper, panel.lower], ROOM - left)
    upper, lower = (_centres(tokens, look, turned, left) for tokens in (panel.upper, panel.lower))
    tall = max([look.measure(label(text)) for text in (*panel.upper, *panel.lower)] or [0.0]) if turned else look.size
    tall = min(tall, 160.0)
    top = drawing.y + tall + 10
    bottom = top + TALL
    _row(drawing, names[0], panel.upper, upper, top - 8, (look, turned, "start"))
    _row(drawing, names[1], panel.lower, lower, bottom + (8 if turned else 6 + tall), (look, turned, "end"))
    aligned = {(int(i), int(j)) for i, j in panel.pairs}
    order = [(float(weights[i, j]), int(i), int(j)) for i, j in np.argwhere(weights >= LEAST)]
    for weight, i, j in sorted(order)[-MOST:]:
        strong = (i, j) in aligned if aligned else weight >= weights[i].max()
        band = _curve((lower[i], bottom), (upper[j], top))
        drawing.add(
            Path(band, COLOURS[0] if strong else FAINT, 1.5 + 9 * weight, opacity=0.15 + 0.7 * min(1.0, weight))
        )
    drawing.y = bottom + tall + 24
    if len(order) > MOST:
        drawing.paragraph(f"{MOST} of {len(order)} links, the strongest", SMALL)
    if panel.pairs:
        pairs = " ".join(f"{j}-{i}" for i, j in panel.pairs)
        drawing.paragraph(f"pairs ({names[0] or 'upper'}-{names[1] or 'lower'}, from 0): {pairs}", SMALL)


def _look(rows: Sequence[Sequence[str]], room: float) -> tuple[Look, bool]:
    """The largest letters in which both rows fit, and whether tokens are turned for that."""
    longest = max(sum(BODY.measure(label(text)) + BETWEEN for text in tokens) for tokens in rows)
    size = BODY.size * min(1.0, room / max(1.0, longest))
    if size >= SMALLEST:
        return replace(BODY, size=size), False
    most = max(len(tokens) for tokens in rows)
    return replace(BODY, size=min(SMALL.size, max(6.0, 0.8 * room / most))), True


def _centres(tokens: Sequence[str], look: Look, turned: bool, left: float) -> list[float]:
    """The middle of each token, blanks shared out evenly over the row."""
    room = ROOM - left
    if turned:
        return [MARGIN + left + room * (number + 0.5) / len(tokens) for number in range(len(tokens))]
    wide = [look.measure(label(text)) for text in tokens]
    blank = min(90.0, (room - sum(wide)) / max(1, len(tokens)))
    places, x = [], MARGIN + left
    for one in wide:
        places.append(x + one / 2)
        x += one + blank
    return places


def _row(
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
