"""A drawing: boxes, lines, dots, words, grids of colour and pictures, for any back end to write out.

Lengths are pixels of a slide 1280 wide, unless a drawing has another width. No back end knows the fonts of the other,
so that the width of words is an estimate here, on the wide side.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from regard.terminal.label import cut, label, prose, wrapped

WIDTH = 1280
MARGIN = 48
INK, FAINT, RULE, GROUND = "#1a1a1a", "#5f5f5f", "#c4c4c4", "#f3f5f7"
PAGE = "currentColor"  # the colour of words around a drawing in a page; in a picture of its own, ink
DASHES = (8.0, 5.0)
NARROW, BROAD = "iljtfrI.,:;'|!()[]{} ", "mwMW@%&<>=+~#"


@dataclass(frozen=True)
class Look:
    """How words are set."""

    size: float = 20
    colour: str = INK
    bold: bool = False
    mono: bool = False

    def measure(self, text: str) -> float:
        """How wide words will be, about."""
        return self.size * sum(self._letter(c) for c in text) * (1.08 if self.bold and not self.mono else 1.0)

    def _letter(self, c: str) -> float:
        if unicodedata.combining(c):
            return 0.0
        if unicodedata.east_asian_width(c) in "WF":
            return 1.05
        if self.mono:
            return 0.602
        return 0.36 if c in NARROW else 0.98 if c in BROAD else 0.70 if c.isupper() else 0.62


TITLE, HEAD, BODY = Look(34, bold=True), Look(24, bold=True), Look(20)
SMALL, MONO = Look(17, FAINT), Look(20, mono=True)


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    fill: str


@dataclass(frozen=True)
class Path:
    """A line through points. dashes: how long ink and gap are in turn, none for a whole line."""

    points: Sequence[tuple[float, float]]
    colour: str = INK
    width: float = 2
    dashes: tuple[float, ...] = ()
    opacity: float = 1.0


@dataclass(frozen=True)
class Area:
    """What lies within points."""

    points: Sequence[tuple[float, float]]
    fill: str
    opacity: float = 1.0


@dataclass(frozen=True)
class Dot:
    """A circle. name: what a page says of it under the pointer."""

    x: float
    y: float
    radius: float
    fill: str
    name: str = ""


@dataclass(frozen=True)
class Words:
    """One line of text on its base line. anchor: what of it is at x: start, middle or end. turned: it goes upward."""

    x: float
    y: float
    text: str
    look: Look = BODY
    anchor: str = "start"
    turned: bool = False


@dataclass(frozen=True)
class Grid:
    """Cells (R, C, 3) of red, green and blue that fill a box."""

    x: float
    y: float
    width: float
    height: float
    colours: np.ndarray


@dataclass(frozen=True)
class Picture:
    """Pixels (H, W, 3) that fill a box. smooth: between them; otherwise each is a square."""

    x: float
    y: float
    width: float
    height: float
    pixels: np.ndarray
    smooth: bool = True


Shape = Box | Path | Area | Dot | Words | Grid | Picture


def placed(shape: Shape, x: float, y: float, scale: float) -> Shape:
    """A shape made larger or smaller, and then moved."""

    def points(given: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x + a * scale, y + b * scale) for a, b in given]

    match shape:
        case Path():
            dashes = tuple(part * scale for part in shape.dashes)
            return replace(shape, points=points(shape.points), width=shape.width * scale, dashes=dashes)
        case Area():
            return replace(shape, points=points(shape.points))
    ((a, b),) = points([(shape.x, shape.y)])
    match shape:
        case Dot():
            return replace(shape, x=a, y=b, radius=shape.radius * scale)
        case Words():
            return replace(shape, x=a, y=b, look=replace(shape.look, size=shape.look.size * scale))
        case Box() | Grid():
            return replace(shape, x=a, y=b, width=shape.width * scale, height=shape.height * scale)


@dataclass
class Drawing:
    """Shapes so far. y: where the next one begins. below: room under the last.

    fixed      its height, where that does not follow from what is in it.
    tallest    how high a map or a plot in it may be, as on a slide.
    is_partial whether something was left out for want of room.
    """

    title: str = ""
    width: float = WIDTH
    y: float = MARGIN
    below: float = MARGIN / 2
    fixed: float | None = None
    tallest: float = math.inf
    is_partial: bool = False
    shapes: list[Shape] = field(default_factory=list)

    @property
    def room(self) -> float:
        """What is between the margins."""
        return self.width - 2 * MARGIN

    @property
    def height(self) -> float:
        return round(self.y + self.below) if self.fixed is None else self.fixed

    def add(self, *shapes: Shape) -> None:
        self.shapes += shapes

    def label(self, text: str, look: Look, room: float) -> str:
        """A token or a name in one line, cut to a width."""
        return cut(label(text), room, wide=look.measure)

    def paragraph(self, text: str, look: Look = BODY, indent: float = 0) -> None:
        """Words in as many lines as they need."""
        for line in wrapped(prose(text), self.room - indent, look.measure):
            self.add(Words(MARGIN + indent, self.y + look.size, line, look))
            self.y += 1.4 * look.size
