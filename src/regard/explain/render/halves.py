"""A panel that is too tall for a slide as two, and at first no longer than a page shows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from regard.explain.flow import Flow
from regard.explain.folding import halved
from regard.explain.overlay import Overlay
from regard.explain.render.number import first_and_last
from regard.explain.render.shapes.numbers import MOST_BARS, MOST_LISTED, MOST_ROWS
from regard.explain.view import Bars, Listing, Note, Numbers, Panel

GOES_ON = " (continued)"


def trimmed(panel: Panel) -> Panel:
    """A panel with the rows that a page has of it, which says how many there are."""
    match panel:
        case Numbers() if len(np.atleast_2d(panel.values)) > MOST_ROWS:
            kept = [row for row in first_and_last(len(panel.values), MOST_ROWS) if row is not None]
            return _said(_chosen(panel, kept), len(kept), len(panel.values), "rows")
        case Listing() if len(panel.rows) > MOST_LISTED:
            return _said(replace(panel, rows=panel.rows[:MOST_LISTED]), MOST_LISTED, len(panel.rows), "rows")
        case Bars() if len(panel.names) > MOST_BARS:
            return _said(_bars(panel, 0, MOST_BARS), MOST_BARS, len(panel.names), "bars")
        case _:
            return panel


def halves(panel: Panel) -> list[Panel]:
    """The first half of a panel and the rest; the panel alone where it cannot be parted."""
    match panel:
        case Numbers():
            count = len(np.atleast_2d(panel.values))
            parts = [_chosen(panel, part) for part in _parted(count)]
            # What was calculated is said once.
            parts[1:] = [replace(part, equation="") for part in parts[1:]]
        case Listing():
            parts = [replace(panel, rows=[panel.rows[row] for row in part]) for part in _parted(len(panel.rows))]
        case Bars():
            parts = [_bars(panel, part.start, part.stop) for part in _parted(len(panel.names))]
        case Note():
            lines = panel.text.split("\n") if "\n" in panel.text else panel.text.split(" ")
            between = "\n" if "\n" in panel.text else " "
            parts = [replace(panel, text=between.join(lines[part.start : part.stop])) for part in _parted(len(lines))]
        case Overlay():
            parts = [worded(panel, part) for part in _parted(len(panel.words))]
        case Flow():
            parts = halved(panel)
        case _:
            return [panel]
    if len(parts) < 2:
        return [panel]
    title = panel.title if panel.title.endswith(GOES_ON) or not panel.title else panel.title + GOES_ON
    return [replace(parts[0], note=""), replace(parts[1], title=title)]


def _parted(count: int) -> list[range]:
    middle = (count + 1) // 2
    return [range(middle), range(middle, count)] if count > 1 else [range(count)]


def _chosen(panel: Numbers, rows: list[int] | range) -> Numbers:
    values = np.atleast_2d(panel.values)[list(rows)]
    places = {row: place for place, row in enumerate(rows)}
    marked = [(places[row], column) for row, column in panel.marked if row in places]
    return replace(panel, values=values, rows=[panel.rows[row] for row in rows] if panel.rows else (), marked=marked)


def worded(panel: Overlay, part: range) -> Overlay:
    """Some of the words of a picture under weights."""
    chosen = slice(part.start, part.stop)
    return replace(panel, weights=panel.weights[chosen], words=panel.words[chosen])


def _bars(panel: Bars, start: int, stop: int) -> Bars:
    return replace(panel, names=panel.names[start:stop], values=panel.values[start:stop])


def _said(panel: Panel, shown: int, count: int, what: str) -> Panel:
    return replace(panel, note=f"{panel.note} {shown} of {count} {what}".strip())
