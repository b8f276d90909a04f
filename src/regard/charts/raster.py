"""A drawing as PNG through Pillow, in the fonts of this machine."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from regard.charts.drawing import INK, PAGE, Area, Box, Dot, Drawing, Grid, Path, Picture, Words
from regard.charts.face import Face
from regard.charts.fonts import in_order, pieces
from regard.charts.size import require_drawable
from regard.errors import UsageError

FINE = 3  # a line is drawn this much larger and made smaller again, for smooth edges


def png(drawing: Drawing, scale: float) -> bytes:
    """The bytes of a picture, `scale` pixels for each of the drawing."""
    held = io.BytesIO()
    image(drawing, scale).save(held, "PNG")
    return held.getvalue()


def image(drawing: Drawing, scale: float) -> Any:
    """The same as an image of Pillow."""
    wide, high = drawing.width * scale, drawing.height * scale
    require_drawable(wide, high)
    image = _pillow("PIL.Image").new("RGB", (round(wide), round(high)), "white")
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
    return image


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
    """A line of text, each part of it in a font that has its letters."""
    parts = [(text, _font(face, round(words.look.size * scale))) for text, face in pieces(words.text, words.look)]
    long = sum(font.getlength(text) for text, font in parts)
    before = {"start": 0.0, "middle": long / 2, "end": long}[words.anchor]
    x, y = words.x * scale, words.y * scale
    if words.turned:
        _write_upward(image, words, parts, (x, y + before))
        return
    x -= before
    for text, font in parts:
        pen.text((x, y), text, fill=_ink(words.look.colour), font=font, anchor="ls")
        x += font.getlength(text)


def _write_upward(image: Any, words: Words, parts: list[tuple[str, Any]], start: tuple[float, float]) -> None:
    """The same from `start` upward: written in a mask of its own, which is turned."""
    long = round(sum(font.getlength(text) for text, font in parts)) + 4
    top = max((-font.getbbox(text, anchor="ls")[1] for text, font in parts), default=0)
    bottom = max((font.getbbox(text, anchor="ls")[3] for text, font in parts), default=0)
    mask = _pillow("PIL.Image").new("L", (long, round(top + bottom) + 4))
    x, pen = 2.0, _pillow("PIL.ImageDraw").Draw(mask)
    for text, font in parts:
        pen.text((x, top + 2), text, fill=255, font=font, anchor="ls")
        x += font.getlength(text)
    upward = mask.transpose(_pillow("PIL.Image").Transpose.ROTATE_90)
    image.paste(_ink(words.look.colour), (round(start[0] - top - 2), round(start[1]) + 2 - long), upward)


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


@lru_cache(maxsize=256)
def _font(face: Face | None, size: int) -> Any:
    """A font of that size; where no font has the letters, the first one, and without any, that of Pillow."""
    module = _pillow("PIL.ImageFont")
    face = face or next(in_order(bold=False, mono=False), None)
    return module.load_default(size) if face is None else module.truetype(str(face.path), size, index=face.number)


def _pillow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError("drawing a PNG needs pillow, which is not installed; pip install 'regard[tasks]'") from None
