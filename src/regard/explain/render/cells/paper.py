"""What is printed on: how wide it is, whether it shows colours, and which letters it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.terminal.label import ascii_only, cut, label, prose, width, wrapped

# Colours of the 256 that all terminals agree on: lighter to darker, blue for a weight and orange for one below zero.
BLUES = (231, 189, 111, 69, 27, 25, 20, 18, 17)
ORANGES = (231, 223, 215, 208, 166, 130, 94, 88, 52)
SERIES = (33, 208, 36, 175, 178, 81, 245, 142)
CODES = {"title": "1", "head": "1", "faint": "2", "marked": "1;7", "answer": "1", "positive": "38;5;33"}
CODES |= {"negative": "38;5;208"}
CODES |= {f"shade{level}": f"48;5;{colour}" for level, colour in enumerate(BLUES)}
CODES |= {f"shade-{level}": f"48;5;{colour}" for level, colour in enumerate(ORANGES) if level}
CODES |= {f"series{number}": f"38;5;{colour}" for number, colour in enumerate(SERIES)}


class Span(NamedTuple):
    """A piece of a line in one style."""

    text: str
    style: str = ""


Line = Sequence[Span]


@dataclass(frozen=True)
class Paper:
    width: int
    colour: bool = False
    unicode: bool = True

    def either(self, unicode: str, plain: str) -> str:
        """The first where the paper holds it."""
        return unicode if self.unicode else plain

    def label(self, text: str, most: int | None = None) -> str:
        """A token or a name in one line, cut to a width."""
        safe = label(text) if self.unicode else ascii_only(label(text))
        return safe if most is None else cut(safe, most, self.either("…", "~"))

    def prose(self, text: str, indent: int = 0) -> list[str]:
        """A text in lines that fit."""
        safe = prose(text) if self.unicode else ascii_only(prose(text))
        return [" " * indent + line for line in wrapped(safe, self.width - indent)]

    def printed(self, line: Line) -> str:
        """A line as it goes to the stream, never wider than the paper."""
        parts, room = [], self.width
        for span in line:
            text = cut(span.text, room, self.either("…", "~"))
            room -= width(text)
            code = CODES.get(span.style) if self.colour else None
            parts.append(f"\x1b[{code}m{text}\x1b[0m" if code and text else text)
        return "".join(parts).rstrip(" ")


def said(text: str, style: str = "") -> list[Span]:
    """A line in one style."""
    return [Span(text, style)]
