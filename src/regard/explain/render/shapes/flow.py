"""The numbers on their way through a model as a picture: from above to below, one way beside the other."""

from __future__ import annotations

import numpy as np

from regard.charts.drawing import FAINT, GROUND, INK, MARGIN, RULE, SMALL, Box, Drawing, Grid, Look, Path, Words
from regard.charts.plot import COLOURS
from regard.explain.flow import Flow, FlowNode, across, blocks
from regard.explain.folding import Drawn, Fold, size_at
from regard.explain.render.number import four
from regard.explain.render.shade import colours

TALL, GAP, BESIDE = 66.0, 34.0, 26.0
WIDEST = 250.0
MAP = 84.0
CELLS = (20, 28)
MOST_ANSWERS = 8
KINDS = {"embedding": 2, "stream": 0, "mixer": 1, "tap": 1, "weights": 3, "net": 4, "head": 5, "answer": 5}
LABEL, TOLD = Look(17, INK, bold=True), Look(14, FAINT)


def flow(panel: Flow, drawing: Drawing) -> None:
    """Draw boxes with their matrices, ribbons as wide as what they carry, and the answers at the end."""
    fold = Fold.of(panel)
    places = _places(fold, drawing.y + 10, drawing.room)
    most: dict[str, float] = {}
    for band in fold.bands:
        most[band.node.measure] = max(most.get(band.node.measure, 0.0), band.size)
    for band in fold.bands:
        share = band.size / (most[band.node.measure] or 1.0)
        _ribbon(drawing, places[id(band.source)], places[id(band.target)], (share, band.is_back, band.node.kind))
    for box in fold.boxes:
        _box(drawing, panel, box, places[id(box)])
    drawing.y = max(y for _, y, _ in places.values()) + TALL + 24
    _answers(drawing, panel)
    told = ", ".join(f"{measure} up to {four(float(f'{size:.3g}'))}" for measure, size in most.items() if size)
    if told:
        drawing.paragraph(f"A ribbon is as wide as what it carries at the position is large: {told}.", SMALL)


def _places(fold: Fold, top: float, room: float) -> dict[int, tuple[float, float, float]]:
    """Left, top and width of each box: sides beside each other, lanes within a side."""
    lanes = [0] * len(fold.panel.sides)
    for box in fold.boxes:
        lanes[fold.side(box)] = max(lanes[fold.side(box)], box.lane + 1)
    wide = min(WIDEST, (room + BESIDE) / max(1, sum(lanes)) - BESIDE)
    found = {}
    for box in fold.boxes:
        before = sum(lanes[: fold.side(box)]) + box.lane
        found[id(box)] = (MARGIN + before * (wide + BESIDE), top + box.row * (TALL + GAP), wide)
    return found


def _box(drawing: Drawing, panel: Flow, box: Drawn, place: tuple[float, float, float]) -> None:
    (x, y, wide), node = place, box.node
    edge = [(x, y), (x + wide, y), (x + wide, y + TALL), (x, y + TALL), (x, y)]
    drawing.add(Box(x, y, wide, TALL, GROUND if box.count > 1 else "#ffffff"), Path(edge, _colour(node.kind), 2))
    cells = _cells(node)
    room = wide - (MAP + 24 if cells is not None and wide > 150 else 16)
    drawing.add(Words(x + 8, y + 24, drawing.label(box.label, LABEL, room), LABEL))
    shape = " x ".join(map(str, node.shape))
    drawing.add(Words(x + 8, y + 42, drawing.label(shape, TOLD, room), TOLD))
    if node.sizes:
        measure = node.measure if node.measure == "length" else "max"  # of weights: the whole word would cut the number
        told = f"{measure} {four(float(f'{size_at(panel, node):.3g}'))}"
        drawing.add(Words(x + 8, y + 58, drawing.label(told, TOLD, room), TOLD))
    if cells is not None and wide > 150:
        drawing.add(Grid(x + wide - MAP - 8, y + 8, MAP, TALL - 16, cells))


def _cells(node: FlowNode) -> np.ndarray | None:
    """The colours of a small map."""
    if node.values is None or not node.values.size:
        return None
    matrix = np.fmax.reduce(node.values, 0) if node.kind == "weights" else across(node.values)
    small = blocks(matrix, *(-(-size // most) for size, most in zip(matrix.shape, CELLS, strict=True)))
    largest = 1.0 if node.kind == "weights" else float(np.nanmax(np.abs(small), initial=0.0)) or 1.0
    return colours(np.clip(small / largest, -1, 1))


def _ribbon(
    drawing: Drawing,
    source: tuple[float, float, float],
    target: tuple[float, float, float],
    drawn: tuple[float, bool, str],
) -> None:
    share, is_back, kind = drawn
    (a, b, wide), (c, d, _) = source, target
    if is_back:
        start, end = (a + wide * 0.85, b + TALL), (c + wide * 0.95, d + TALL)
        middle = ((start[0] + end[0]) / 2, max(start[1], end[1]) + 20)
        drawing.add(Path([start, middle, end], _colour(kind), 1.5, (5.0, 4.0), 0.8))
        return
    along = np.linspace(0.0, 1.0, 21)
    shift = along * along * (3 - 2 * along)
    xs, ys = a + wide / 2 + (c - a) * shift, b + TALL + (d - b - TALL) * along
    points = [(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]
    drawing.add(Path(points, _colour(kind), 1.5 + 9 * share, opacity=0.4))


def _colour(kind: str) -> str:
    return COLOURS[KINDS[kind]] if kind in KINDS else RULE


def _answers(drawing: Drawing, panel: Flow) -> None:
    """Bars of the answers at the place."""
    answers = panel.answers
    if answers is None:
        return
    place = min(panel.place, len(answers.names) - 1)
    told = answers.chances(place) if answers.kind == "chance" else np.asarray(answers.scores[place])
    most = float(np.abs(told).max(initial=0.0)) or 1.0
    for name, value in list(zip(answers.names[place], told, strict=True))[:MOST_ANSWERS]:
        drawing.add(Words(MARGIN + 190, drawing.y + 16, drawing.label(name, SMALL, 180), SMALL, "end"))
        long = 420 * abs(float(value)) / most
        drawing.add(Box(MARGIN + 202, drawing.y, max(1.0, long), 20, COLOURS[5]))
        drawing.add(Words(MARGIN + 212 + long, drawing.y + 16, four(float(value)), SMALL))
        drawing.y += 26
    drawing.y += 8
