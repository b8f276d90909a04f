"""A view as lines of a terminal: shades, bars and numbers that fit its width, in colour where it has any."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from regard.explain.flow import Flow
from regard.explain.overlay import Overlay
from regard.explain.render.cells.curves import curves
from regard.explain.render.cells.flow import flow
from regard.explain.render.cells.maps import heat, links
from regard.explain.render.cells.numbers import bars, listing, note, numbers
from regard.explain.render.cells.paper import Line, Paper, said
from regard.explain.render.cells.pictures import overlay, thumbnails
from regard.explain.thumbnails import Thumbnails
from regard.explain.view import Bars, Curves, Heat, Links, Listing, Note, Numbers, Panel, View
from regard.terminal.label import facts

LEAST_WIDTH = 20
PIPE_WIDTH = 100
NEEDED = "▁█░▒│…→⣿"  # what a stream must hold to be drawn on with more than ASCII


def show(view: View, stream: TextIO | None = None) -> None:
    """Print a view: as wide as the terminal and in its colours, or plain at 100 columns in a pipe."""
    out = sys.stdout if stream is None else stream
    terminal = out.isatty()
    width = shutil.get_terminal_size((PIPE_WIDTH, 24)).columns if terminal else PIPE_WIDTH
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    for line in lines(view, width, colour, _holds_blocks(out)):
        print(line, file=out)


def lines(view: View, width: int, colour: bool = False, unicode: bool = True) -> list[str]:
    """The lines of a view, none wider than `width`, which counts as at least 20."""
    paper = Paper(max(LEAST_WIDTH, width), colour, unicode)
    found: list[Line] = [said(text, "title") for text in paper.prose(view.title)]
    about = facts(view.about)
    found += [said(text, "faint") for text in paper.prose(about)] if about else []
    for panel in view.panels:
        found += [[], *_panel(panel, paper)]
    if view.caveat:
        found += [[], *(said(text, "faint") for text in paper.prose(view.caveat))]
    return [paper.printed(line) for line in found]


def _panel(panel: Panel, paper: Paper) -> list[Line]:
    head = [said(text, "head") for text in paper.prose(panel.title)] if panel.title else []
    foot = [said(text, "faint") for text in paper.prose(panel.note)] if panel.note else []
    return [*head, *_drawn(panel, paper), *foot]


def _drawn(panel: Panel, paper: Paper) -> list[Line]:
    match panel:
        case Note():
            return note(panel, paper)
        case Numbers():
            return numbers(panel, paper)
        case Heat():
            return heat(panel, paper)
        case Links():
            return links(panel, paper)
        case Bars():
            return bars(panel, paper)
        case Curves():
            return curves(panel, paper)
        case Listing():
            return listing(panel, paper)
        case Flow():
            return flow(panel, paper)
        case Thumbnails():
            return thumbnails(panel, paper)
        case Overlay():
            return overlay(panel, paper)
    raise TypeError(f"no way to print a panel of kind {panel.kind!r}")


def _holds_blocks(stream: TextIO) -> bool:
    """Whether the stream can hold more than ASCII, and the locale, where one is named, can show it.

    The command writes UTF-8 whatever the locale says, so that the stream alone does not tell.
    """
    named = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    if named and "utf" not in named.lower():
        return False
    try:
        NEEDED.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
