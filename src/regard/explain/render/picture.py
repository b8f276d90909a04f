"""A view as a picture for a slide: SVG, or PNG where Pillow is installed. One drawing, two ways to write it out."""

from __future__ import annotations

from regard.charts.drawing import HEAD, SMALL, TITLE, Drawing
from regard.charts.raster import png
from regard.charts.svg import svg
from regard.explain.render.shapes.curves import curves
from regard.explain.render.shapes.maps import heat, links
from regard.explain.render.shapes.numbers import bars, listing, note, numbers
from regard.explain.view import Bars, Curves, Heat, Links, Listing, Note, Numbers, Panel, View
from regard.terminal.label import facts, label

BETWEEN = 28


def to_svg(view: View) -> str:
    """The text of an SVG file."""
    return svg(_drawing(view))


def to_png(view: View, scale: float = 2) -> bytes:
    """The bytes of a PNG file, 1280 x `scale` pixels wide."""
    return png(_drawing(view), scale)


def _drawing(view: View) -> Drawing:
    drawing = Drawing(title=label(view.title))
    drawing.paragraph(view.title, TITLE)
    about = facts(view.about)
    if about:
        drawing.paragraph(about, SMALL)
    for panel in view.panels:
        drawing.y += BETWEEN if panel.title else BETWEEN / 2
        if panel.title:
            drawing.paragraph(panel.title, HEAD)
            drawing.y += 6
        _draw(panel, drawing)
        if panel.note:
            drawing.paragraph(panel.note, SMALL)
    if view.caveat:
        drawing.y += BETWEEN
        drawing.paragraph(view.caveat, SMALL)
    return drawing


def _draw(panel: Panel, drawing: Drawing) -> None:
    match panel:
        case Note():
            note(panel, drawing)
        case Numbers():
            numbers(panel, drawing)
        case Heat():
            heat(panel, drawing)
        case Links():
            links(panel, drawing)
        case Bars():
            bars(panel, drawing)
        case Curves():
            curves(panel, drawing)
        case Listing():
            listing(panel, drawing)
        case _:
            raise TypeError(f"no way to draw a panel of kind {panel.kind!r}")
