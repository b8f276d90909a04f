"""How large a picture is: a slide of fixed sides, or a page as long as what it shows.

A slide is drawn on 960 x 540 lengths and shown larger, so that letters of a length of 20 are those of 20 points on a
slide of 13.3 x 7.5 inches, which is read from the back of a room.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from regard.errors import UsageError, nearest

ACROSS, UP = 960, 540
LEAST, MOST = 240, 8192  # pixels of a side
MOST_PIXELS = 60_000_000
SIDES = re.compile(r"(\d+)x(\d+)")


@dataclass(frozen=True)
class Size:
    """A picture of so many pixels."""

    width: int
    height: int

    @property
    def scale(self) -> float:
        """Pixels for each length of the drawing."""
        return min(self.width / ACROSS, self.height / UP)

    @property
    def sides(self) -> tuple[float, float]:
        """The lengths that there is room for, across and down."""
        return self.width / self.scale, self.height / self.scale


PAGE = "page"
NAMED = {"slide": Size(1920, 1080), "wide": Size(2560, 1080)}


def size_of(text: str) -> Size | None:
    """The size that a name or WIDTHxHEIGHT says; none for a page.

    >>> size_of("slide"), size_of("1080x1080"), size_of("page")
    (Size(width=1920, height=1080), Size(width=1080, height=1080), None)
    """
    if text == PAGE:
        return None
    if text in NAMED:
        return NAMED[text]
    found = SIDES.fullmatch(text)
    if found is None:
        near = nearest(text, (*NAMED, PAGE))
        raise UsageError(f"--size: unknown size {text!r}{near}; or pixels, such as 1280x720")
    width, height = int(found[1]), int(found[2])
    if min(width, height) < LEAST or max(width, height) > MOST:
        raise UsageError(f"--size {text}: the sides of a picture are {LEAST} to {MOST} pixels")
    return Size(width, height)


def require_drawable(width: float, height: float) -> None:
    """Refuse a picture of pixels that no program would open."""
    if width * height > MOST_PIXELS:
        raise UsageError(
            f"a picture of {width:,.0f} x {height:,.0f} pixels is more than programs open; save the view as .svg or "
            ".html, or on slides with the size 'slide'"
        )
