"""A panel of any kind in a picture: its title, what it shows, and the sentence below it."""

from __future__ import annotations

from regard.charts.drawing import HEAD, SMALL, Drawing
from regard.explain.flow import Flow
from regard.explain.overlay import Overlay
from regard.explain.render.shapes.curves import curves
from regard.explain.render.shapes.flow import flow
from regard.explain.render.shapes.maps import heat, links
from regard.explain.render.shapes.numbers import bars, listing, note, numbers
from regard.explain.render.shapes.pictures import overlay, thumbnails
from regard.explain.thumbnails import Thumbnails
from regard.explain.view import Bars, Curves, Heat, Links, Listing, Note, Numbers, Panel


def put_panel(panel: Panel, drawing: Drawing) -> None:
    """Draw a panel at the end of a drawing."""
    if panel.title:
        drawing.paragraph(panel.title, HEAD)
        drawing.y += 6
    _draw(panel, drawing)
    if panel.note:
        drawing.paragraph(panel.note, SMALL)


def panel_height(panel: Panel) -> float:
    """About how much of its height a panel takes for words around what it shows."""
    title = 1.4 * HEAD.size + 6 if panel.title else 0
    return title + (2.8 * SMALL.size if panel.note else 0)


def _draw(panel: Panel, drawing: Drawing) -> None:
    match panel:
        case Note(text=""):
            return
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
        case Flow():
            flow(panel, drawing)
        case Thumbnails():
            thumbnails(panel, drawing)
        case Overlay():
            overlay(panel, drawing)
        case _:
            raise TypeError(f"no way to draw a panel of kind {panel.kind!r}")
