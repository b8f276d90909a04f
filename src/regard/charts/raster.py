"""A drawing as PNG through Pillow, in a DejaVu font where there is one."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from regard.charts.drawing import INK, PAGE, Area, Box, Dot, Drawing, Grid, Look, Path, Picture, Words
from regard.errors import UsageError

FINE = 3  # a line is drawn this much larger and made smaller again, for smooth edges
# Where DejaVu lacks a script, the first of these that is installed and has it.
OTHERS = ("NotoSansCJK-Regular.ttc", "NotoSans-Regular.ttf", "msyh.ttc", "Arial Unicode.ttf", "arial.ttf")


def png(drawing: Drawing, scale: float) -> bytes:
    """The bytes of a picture, `scale` pixels for each of the drawing."""
    image = _pillow("PIL.Image").new("RGB", (round(drawing.width * scale), round(drawing.height * scale)), "white")
    pen = _pillow("PIL.ImageDraw").Draw(image)
    for shape in drawing.shapes:
        match shape:
            case Box():
                corners = (shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
                left, top, right, bottom = (round(end * scale) for end in corners)
                pen.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), fill=_ink(shape.fill))
            case Path():
                _line(image, shape, scale)
            case Area():
                _area(image, shape, scale)
            case Dot():
                _dot(image, shape, scale)
            case Words():
                _write(image, pen, shape, scale)
            case Grid():
                _fill(image, shape, scale)
            case Picture():
                _paste(image, shape, scale)
    held = io.BytesIO()
    image.save(held, "PNG")
    return held.getvalue()


def _line(image: Any, path: Path, scale: float) -> None:
    fine = scale * FINE
    wide = max(1, round(path.width * fine))

    def draw(pen: Any, places: list[tuple[float, float]]) -> None:
        ink, gap = (part * fine for part in path.dashes or (0.0, 0.0))
        for piece in _dashes(places, ink, gap) if path.dashes else [places]:
            pen.line(piece, fill=round(255 * path.opacity), width=wide, joint="curve")

    _smooth(image, path.points, path.width, path.colour, scale, draw)


def _area(image: Any, area: Area, scale: float) -> None:
    _smooth(image, area.points, 0, area.fill, scale, lambda pen, places: pen.polygon(places, round(255 * area.opacity)))


def _dot(image: Any, dot: Dot, scale: float) -> None:
    corners = [(dot.x - dot.radius, dot.y - dot.radius), (dot.x + dot.radius, dot.y + dot.radius)]
    _smooth(image, corners, 0, dot.fill, scale, lambda pen, places: pen.ellipse(places, 255))


def _smooth(
    image: Any,
    points: Sequence[tuple[float, float]],
    around: float,
    colour: str,
    scale: float,
    draw: Callable[[Any, list[tuple[float, float]]], None],
) -> None:
    """What is drawn through points in a mask of its own, which gives smooth edges and lets others shine through."""
    points = [(x * scale, y * scale) for x, y in points]
    room = around * scale + 2
    left, top = (int(min(point[side] for point in points) - room) for side in (0, 1))
    right, bottom = (int(max(point[side] for point in points) + room) + 1 for side in (0, 1))
    mask = _pillow("PIL.Image").new("L", ((right - left) * FINE, (bottom - top) * FINE))
    draw(_pillow("PIL.ImageDraw").Draw(mask), [((x - left) * FINE, (y - top) * FINE) for x, y in points])
    image.paste(_ink(colour), (left, top), mask.reduce(FINE))


def _ink(colour: str) -> str:
    return INK if colour == PAGE else colour


def _dashes(points: list[tuple[float, float]], ink: float, gap: float) -> list[list[tuple[float, float]]]:
    """Pieces of a line, each as long as `ink`."""
    pieces: list[list[tuple[float, float]]] = []
    gone = 0.0
    for (a, b), (c, d) in pairwise(points):
        length = ((c - a) ** 2 + (d - b) ** 2) ** 0.5
        at = 0.0
        while at < length:
            phase = (gone + at) % (ink + gap)
            step = max(0.5, min(length - at, (ink if phase < ink else ink + gap) - phase))
            if phase < ink:
                pieces.append([(a + (c - a) * t / length, b + (d - b) * t / length) for t in (at, at + step)])
            at += step
        gone += length
    return pieces


def _write(image: Any, pen: Any, words: Words, scale: float) -> None:
    font = _font(words.look, words.text, scale)
    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[words.anchor]
    x, y = words.x * scale, words.y * scale
    if not words.turned:
        pen.text((x, y), words.text, fill=_ink(words.look.colour), font=font, anchor=anchor)
        return
    left, top, right, bottom = (int(side) for side in font.getbbox(words.text, anchor="ls"))
    mask = _pillow("PIL.Image").new("L", (right - left + 2, bottom - top + 2))
    _pillow("PIL.ImageDraw").Draw(mask).text((1 - left, 1 - top), words.text, fill=255, font=font, anchor="ls")
    before = {"start": 0, "middle": (right - left) // 2, "end": right - left}[words.anchor]
    upward = mask.transpose(_pillow("PIL.Image").Transpose.ROTATE_90)
    image.paste(_ink(words.look.colour), (round(x) + top - 1, round(y) + before - upward.height), upward)


def _fill(image: Any, grid: Grid, scale: float) -> None:
    size = (max(1, round(grid.width * scale)), max(1, round(grid.height * scale)))
    module = _pillow("PIL.Image")
    cells = module.fromarray(grid.colours).resize(size, module.Resampling.NEAREST)
    image.paste(cells, (round(grid.x * scale), round(grid.y * scale)))


def _paste(image: Any, picture: Picture, scale: float) -> None:
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    module = _pillow("PIL.Image")
    between = module.Resampling.BICUBIC if picture.smooth else module.Resampling.NEAREST
    pixels = module.fromarray(np.ascontiguousarray(picture.pixels)).resize(size, between)
    image.paste(pixels, (round(picture.x * scale), round(picture.y * scale)))


def _font(look: Look, text: str, scale: float) -> Any:
    size = round(look.size * scale)
    first = "DejaVuSansMono" if look.mono else "DejaVuSans"
    names = (f"{first}-Bold.ttf" if look.bold else f"{first}.ttf", *OTHERS)
    found = [font for font in (_named(name, size) for name in names) if font is not None]
    return next((font for font in found if _holds(font, text)), found[0] if found else _default(size))


@lru_cache(maxsize=256)
def _named(name: str, size: int) -> Any:
    try:
        return _pillow("PIL.ImageFont").truetype(name, size)
    except OSError:
        return None


@lru_cache(maxsize=64)
def _default(size: int) -> Any:
    return _pillow("PIL.ImageFont").load_default(size)


def _holds(font: Any, text: str) -> bool:
    """Whether a font has all letters: for one that it lacks it draws what it draws for no letter at all."""
    return text.isascii() or all(c.isascii() or _has(font, c) for c in text)


@lru_cache(maxsize=4096)
def _has(font: Any, c: str) -> bool:
    return bytes(font.getmask(c)) != bytes(font.getmask("\uffff"))


def _pillow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError("drawing a PNG needs pillow, which is not installed; pip install 'regard[tasks]'") from None
