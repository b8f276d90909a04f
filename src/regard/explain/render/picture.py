"""A view as pictures: SVG, or PNG where Pillow is installed; as one long page or on slides. One drawing, two ways to
write it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regard.charts.drawing import SMALL, TITLE, Drawing
from regard.charts.embed import Embedded, embedded
from regard.charts.fonts import missing
from regard.charts.raster import png
from regard.charts.size import PAGE, size_of
from regard.charts.svg import svg
from regard.errors import UsageError
from regard.explain.render.shapes.panel import put_panel
from regard.explain.render.slides import slides
from regard.explain.view import View
from regard.terminal.label import facts, label

BETWEEN = 28
FINE = 2  # pixels of a PNG for each length of a page

Tell = Callable[[str], None]


def drawings(view: View, size: str = PAGE) -> tuple[list[Drawing], float]:
    """What a view is drawn on, and how much larger it is shown: one page, or one slide and more."""
    found = size_of(size)
    return ([page(view)], 1.0) if found is None else (slides(view, found), found.scale)


def to_svg(view: View, size: str = PAGE) -> str:
    """The text of an SVG file, in the fonts of whoever looks."""
    made, scale = drawings(view, size)
    return svg(_only(made, size), scale)


def to_png(view: View, scale: float = FINE, size: str = PAGE) -> bytes:
    """The bytes of a PNG file: a page of 1280 x `scale` pixels across, or one slide."""
    made, larger = drawings(view, size)
    return png(_only(made, size), scale if size == PAGE else larger)


def pictures(view: View, kind: str, size: str, tell: Tell) -> list[bytes]:
    """The files of a view, one for each slide. tell: what is to be known of letters without a font."""
    made, scale = drawings(view, size)
    for line in missing(made):
        tell(line)
    if kind == ".png":
        return [png(one, FINE if size == PAGE else scale) for one in made]
    return [svg(one, scale, fonts_of([one], tell)).encode() for one in made]


def fonts_of(made: Sequence[Drawing], tell: Tell) -> Embedded:
    """The fonts that lie in an SVG; what keeps one out is told."""
    fonts, notes = embedded(made)
    for line in notes:
        tell(line)
    return fonts


def page(view: View) -> Drawing:
    """All panels below each other."""
    drawing = Drawing(title=label(view.title))
    drawing.paragraph(view.title, TITLE)
    about = facts(view.about)
    if about:
        drawing.paragraph(about, SMALL)
    for panel in view.panels:
        drawing.y += BETWEEN if panel.title else BETWEEN / 2
        put_panel(panel, drawing)
    if view.caveat:
        drawing.y += BETWEEN
        drawing.paragraph(view.caveat, SMALL)
    return drawing


def _only(made: Sequence[Drawing], size: str) -> Drawing:
    if len(made) > 1:
        raise UsageError(f"the view takes {len(made)} slides of size {size!r}: view.save(path, size) writes them")
    return made[0]
