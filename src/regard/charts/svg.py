"""A drawing as SVG. Words stay words, so that they can be searched and copied."""

from __future__ import annotations

from html import escape

import numpy as np

from regard.charts.drawing import WIDTH, Box, Drawing, Grid, Path, Shape, Words

SANS = "system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif"
FIXED = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def svg(drawing: Drawing, title: str) -> str:
    """A whole file on white."""
    name = escape(title)
    size = f'width="{WIDTH}" height="{drawing.height}" viewBox="0 0 {WIDTH} {drawing.height}"'
    shapes = "\n".join(_shape(shape) for shape in drawing.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{name}" font-family="{SANS}">\n'
        f'<title>{name}</title>\n<rect width="{WIDTH}" height="{drawing.height}" fill="#ffffff"/>\n{shapes}\n</svg>\n'
    )


def _shape(shape: Shape) -> str:
    match shape:
        case Box():
            return f'<rect {_box(shape)} fill="{shape.fill}"/>'
        case Path():
            return _path(shape)
        case Words():
            return _words(shape)
        case Grid():
            return _grid(shape)


def _path(path: Path) -> str:
    points = " ".join(f"{_short(x)},{_short(y)}" for x, y in path.points)
    more = ' stroke-dasharray="8 5"' if path.dashed else ""
    more += f' stroke-opacity="{path.opacity:.2f}"' if path.opacity < 1 else ""
    line = f'stroke="{path.colour}" stroke-width="{_short(path.width)}" stroke-linejoin="round"'
    return f'<polyline points="{points}" fill="none" {line}{more}/>'


def _words(words: Words) -> str:
    look = words.look
    more = f' text-anchor="{words.anchor}"' if words.anchor != "start" else ""
    more += ' font-weight="700"' if look.bold else ""
    more += f' font-family="{FIXED}"' if look.mono else ""
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


def _box(box: Box) -> str:
    return f'x="{_short(box.x)}" y="{_short(box.y)}" width="{_short(box.width)}" height="{_short(box.height)}"'


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
