"""A view on slides: its panels in their order, as many on a slide as it holds, in letters as large as they can be.

Small panels stand side by side. What is taller than a slide is drawn smaller, down to letters that are still read from
the back of a room, and goes on on the next slide where that is not enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from regard.charts.drawing import FAINT, MARGIN, SMALL, Drawing, Look, Words, placed
from regard.charts.size import Size
from regard.errors import UsageError
from regard.explain.render.halves import halves, trimmed
from regard.explain.render.shapes.panel import panel_height, put_panel
from regard.explain.view import Bars, Heat, Numbers, Panel, View
from regard.terminal.label import facts, label, prose, wrapped

TOP, BOTTOM, BETWEEN = 28, 24, 24
FIRST, LATER, ABOUT = Look(30, bold=True), Look(18, FAINT, bold=True), replace(SMALL, size=15)
CORNER = 160  # the room of what is told in the corner
SCALES = (1.5, 1.35, 1.2, 1.1, 1.0, 0.9, 0.8, 0.7)
MOST_SLIDES = 200
FEW_COLUMNS, FEW_BARS, FEW_PLACES = 5, 12, 16  # of panels that stand side by side
Row = Sequence[Panel]


@dataclass(frozen=True)
class Room:
    """What a slide has for panels, in its own lengths."""

    wide: float
    high: float

    def holds(self, drawn: Drawing, scale: float) -> bool:
        return drawn.y * scale <= self.high


def slides(view: View, size: Size) -> list[Drawing]:
    """All slides of a view, with their number in the corner where there are several."""
    made = [headed(view, size, is_first=True)]
    rest = list(_rows([*map(trimmed, view.panels)], made[0].room))
    while rest:
        rest = fill(made[-1], rest)
        if rest:
            made.append(headed(view, size))
        if len(made) > MOST_SLIDES:
            raise UsageError(f"the view takes more than {MOST_SLIDES} slides; save it as .html, or as a page")
    for number, slide in enumerate(made, 1):
        corner(slide, f"{number} / {len(made)}" if len(made) > 1 else "")
    return made


def headed(view: View, size: Size, is_first: bool = False) -> Drawing:
    """A slide with the title of a view; on the first one also what it is of, and at the foot what it does not prove."""
    wide, high = size.sides
    slide = Drawing(title=label(view.title), width=wide, y=TOP, below=BOTTOM, fixed=high)
    look = FIRST if is_first else LATER
    for line in wrapped(label(view.title), slide.room - CORNER, look.measure)[:3]:
        slide.add(Words(MARGIN, slide.y + look.size, line, look))
        slide.y += 1.3 * look.size
    if is_first and facts(view.about):
        slide.paragraph(facts(view.about), ABOUT)
    slide.y += 16
    lines = wrapped(prose(view.caveat), slide.room, ABOUT.measure) if is_first and view.caveat else []
    for line in reversed(lines):
        slide.add(Words(MARGIN, high - slide.below, line, ABOUT))
        slide.below += 1.35 * ABOUT.size
    return slide


def corner(slide: Drawing, told: str) -> None:
    """Say where among the others a slide is."""
    if told:
        slide.add(Words(slide.width - MARGIN, TOP + LATER.size, told, SMALL, "end"))


def fill(slide: Drawing, rows: Sequence[Row]) -> list[Row]:
    """Put on a slide what it holds of rows of panels, and give the rest back."""
    room = Room(slide.room, slide.height - slide.below - slide.y)
    taken = 1
    while taken < len(rows) and room.holds(_drawn(rows[: taken + 1], room, 1.0), 1.0):
        taken += 1
    found = _largest(rows[:taken], room)
    if found is None:
        parts = [part for panel in rows[0] for part in halves(panel)]
        if len(parts) > len(rows[0]):
            return fill(slide, [*([part] for part in parts), *rows[1:]])
    scale, drawn = found or _squeezed(rows[:1], room)
    left = MARGIN * (1 - scale)
    slide.add(*(placed(shape, left, slide.y, scale) for shape in drawn.shapes))
    return list(rows[taken:])


def _largest(rows: Sequence[Row], room: Room) -> tuple[float, Drawing] | None:
    """Rows in the largest letters in which nothing is left out; else in the smallest, if they fit at all."""
    found = None
    for scale in SCALES:
        drawn = _drawn(rows, room, scale)
        if room.holds(drawn, scale):
            found = scale, drawn
            if not drawn.is_partial:
                break
    return found


def _squeezed(rows: Sequence[Row], room: Room) -> tuple[float, Drawing]:
    """What cannot be parted, in letters as small as it takes."""
    drawn = _drawn(rows, room, SCALES[-1])
    return min(SCALES[-1], room.high / max(1.0, drawn.y)), drawn


def _drawn(rows: Sequence[Row], room: Room, scale: float) -> Drawing:
    """Rows below each other in a drawing that is to be shown `scale` times as large."""
    whole = Drawing(width=room.wide / scale + 2 * MARGIN, y=0, below=0)
    for number, row in enumerate(rows):
        whole.y += BETWEEN if number else 0
        across = (whole.room - BETWEEN * (len(row) - 1)) / len(row)
        bottom = whole.y
        for place, panel in enumerate(row):
            part = Drawing(width=across + 2 * MARGIN, y=0, below=0, tallest=room.high / scale - panel_height(panel))
            put_panel(panel, part)
            x = place * (across + BETWEEN)
            whole.add(*(placed(shape, x, whole.y, 1.0) for shape in part.shapes))
            whole.is_partial |= part.is_partial
            bottom = max(bottom, whole.y + part.y)
        whole.y = bottom
    return whole


def _rows(panels: Sequence[Panel], wide: float) -> Iterator[Row]:
    """Panels below each other, two small ones that follow each other in one row where both are whole there."""
    waiting: list[Panel] = []
    for panel in panels:
        small = _is_small(panel)
        if waiting and small and not _drawn([[*waiting, panel]], Room(wide, math.inf), 1.0).is_partial:
            yield [*waiting, panel]
            waiting = []
            continue
        yield from ([one] for one in waiting)
        waiting = [panel] if small else []
        yield from () if small else ([panel],)
    yield from ([one] for one in waiting)


def _is_small(panel: Panel) -> bool:
    match panel:
        case Numbers():
            return panel.values.ndim < 2 or panel.values.shape[-1] <= FEW_COLUMNS
        case Bars():
            return len(panel.names) <= FEW_BARS
        case Heat():
            return len(panel.columns) <= FEW_PLACES and all(len(name) < 3 for name in panel.columns)
        case _:
            return False
