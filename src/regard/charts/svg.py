"""A drawing as SVG. Words stay words, so that they can be searched and copied."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from regard.charts.drawing import Area, Box, Dot, Drawing, Grid, Path, Picture, Shape, Words
from regard.charts.embed import Embedded
from regard.charts.png import in_text

SANS = "system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif"
FIXED = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


NONE = Embedded()


def svg(drawing: Drawing, scale: float = 1, fonts: Embedded = NONE) -> str:
    """A whole file on white, shown `scale` times as large as it was drawn."""
    shapes = "\n".join(shape_of(shape, fonts) for shape in drawing.shapes)
    return whole_file(drawing, scale, shapes, fonts)


def inline_svg(drawing: Drawing) -> str:
    """An element that stands in a page: as wide as there is room, on the ground of the page."""
    return _element(drawing, "", "\n".join(shape_of(shape, NONE) for shape in drawing.shapes), SANS)


def whole_file(drawing: Drawing, scale: float, shapes: str, fonts: Embedded = NONE, style: str = "") -> str:
    """A file of shapes that are written already, on white, with its fonts and a style."""
    wide, high = _short(drawing.width), _short(drawing.height)
    ground = f'<rect width="{wide}" height="{high}" fill="#ffffff"/>\n'
    sheet = f"<style>{fonts.style}{style}</style>\n" if fonts.style or style else ""
    size = f' width="{_short(drawing.width * scale)}" height="{_short(drawing.height * scale)}"'
    return _element(drawing, size, f"{sheet}{ground}{shapes}", _families(fonts.sans, SANS)) + "\n"


def _element(drawing: Drawing, size: str, inside: str, family: str) -> str:
    name = escape(drawing.title)
    seen = f'viewBox="0 0 {_short(drawing.width)} {_short(drawing.height)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg"{size} {seen} role="img" aria-label="{name}" '
        f'font-family="{family}">\n<title>{name}</title>\n{inside}\n</svg>'
    )


def _families(embedded: str, others: str) -> str:
    return f"{embedded}, {others}" if embedded else others


def shape_of(shape: Shape, fonts: Embedded = NONE) -> str:
    """An element of SVG."""
    match shape:
        case Box():
            return f'<rect {_box(shape)} fill="{shape.fill}"/>'
        case Path():
            return _path(shape)
        case Area():
            return f'<polygon points="{_points(shape.points)}" fill="{shape.fill}" fill-opacity="{shape.opacity:.2f}"/>'
        case Dot():
            return _dot(shape)
        case Words():
            return _words(shape, fonts)
        case Grid():
            return _grid(shape)
        case Picture():
            return _picture(shape)


def _path(path: Path) -> str:
    more = f' stroke-dasharray="{" ".join(_short(part) for part in path.dashes)}"' if path.dashes else ""
    more += f' stroke-opacity="{path.opacity:.2f}"' if path.opacity < 1 else ""
    line = f'stroke="{path.colour}" stroke-width="{_short(path.width)}" stroke-linejoin="round"'
    return f'<polyline points="{_points(path.points)}" fill="none" {line}{more}/>'


def _dot(dot: Dot) -> str:
    circle = f'<circle cx="{_short(dot.x)}" cy="{_short(dot.y)}" r="{_short(dot.radius)}" fill="{dot.fill}"'
    return f"{circle}><title>{escape(dot.name)}</title></circle>" if dot.name else f"{circle}/>"


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_short(x)},{_short(y)}" for x, y in points)


def _words(words: Words, fonts: Embedded) -> str:
    look = words.look
    more = f' text-anchor="{words.anchor}"' if words.anchor != "start" else ""
    more += ' font-weight="700"' if look.bold else ""
    more += f' font-family="{_families(fonts.mono, FIXED)}"' if look.mono else ""
    x, y = _short(words.x), _short(words.y)
    more += f' transform="rotate(-90 {x} {y})"' if words.turned else ""
    more += ' xml:space="preserve"' if "  " in words.text else ""
    text = escape(words.text, quote=False)
    return f'<text x="{x}" y="{y}" font-size="{_short(look.size)}" fill="{look.colour}"{more}>{text}</text>'


def _grid(grid: Grid) -> str:
    """One path for each colour, cells of a row that are alike in one piece: short also for 400 x 400."""
    rows, columns = grid.colours.shape[:2]
    codes = grid.colours.astype(np.uint32) @ np.array([65536, 256, 1], dtype=np.uint32)
    pieces: dict[int, list[str]] = {}
    for row, line in enumerate(codes):
        starts = np.flatnonzero(np.r_[True, line[1:] != line[:-1]])
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), columns], strict=True):
            pieces.setdefault(int(line[start]), []).append(f"M{start} {row}h{stop - start}v1h{start - stop}z")
    place = f"translate({_short(grid.x)} {_short(grid.y)}) scale({grid.width / columns:.6g} {grid.height / rows:.6g})"
    paths = "".join(f'<path fill="#{code:06x}" d="{"".join(parts)}"/>' for code, parts in sorted(pieces.items()))
    return f'<g transform="{place}" shape-rendering="crispEdges">{paths}</g>'


def _picture(picture: Picture) -> str:
    """The pixels are in the file: nothing is asked from elsewhere."""
    look = "auto" if picture.smooth else "pixelated"
    link = f"data:image/png;base64,{in_text(picture.pixels)}"
    return f'<image {_box(picture)} preserveAspectRatio="none" style="image-rendering:{look}" href="{link}"/>'


def _box(box: Box | Picture) -> str:
    return f'x="{_short(box.x)}" y="{_short(box.y)}" width="{_short(box.width)}" height="{_short(box.height)}"'


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
