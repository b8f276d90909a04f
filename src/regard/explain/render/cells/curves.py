"""Lines over an axis in dots of braille, or with a mark for each line where colours cannot tell them apart.

Bands are shaded, the inner ones more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from regard.charts.plot import Axis, Points, plotted
from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import four
from regard.explain.view import Curves
from regard.terminal.label import width

TALL = 12
MOST_WIDE = 100
MARKS = "ox+*#@%&"
SHADES, PLAIN_SHADES = "░▒▓", ".:-"
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille letter, by row and column


def curves(panel: Curves, paper: Paper) -> list[Line]:
    """A plot with the ends of its axes, and a legend."""
    plot, kept = plotted(panel.lines, Axis(panel.x, panel.x_log), Axis(panel.y, panel.y_log), panel.bands)
    if not any(kept.values()):
        return [said("(no points)", "faint")]
    ends = [four(plot.up[1]), four(plot.up[0])]
    left = max(len(text) for text in ends)
    wide = max(4, min(MOST_WIDE, paper.width - left - 2))
    fine = paper.unicode and (paper.colour or len(kept) == 1)
    size = (wide * 2, TALL * 4) if fine else (wide, TALL)
    grids = [_grid([plot.place(*point) for point in line], *size) for line in kept.values()]
    ground = _ground(
        [[(*plot.place(a, low), plot.place(a, high)[1]) for a, low, high in band] for band in panel.bands.values()],
        wide,
        paper.either(SHADES, PLAIN_SHADES),
    )
    style = f"series{_place(panel.around, kept)}"
    rows = _braille(grids, ground, style) if fine else _marked(grids, ground)
    edge, corner, base = (paper.either(*pair) for pair in (("│", "|"), ("└", "+"), ("─", "-")))
    sides = [ends[0], *[""] * (TALL - 2), ends[1]]
    lines: list[Line] = []
    if panel.y:
        lines += [said(text, "faint") for text in paper.prose(plot.y.full_label)]
    lines += [[Span(f"{side.rjust(left)} {edge}"), *row] for side, row in zip(sides, rows, strict=True)]
    first, last = (_named(end, panel.x_names) for end in plot.across)
    before = " " * (left + 2)
    lines.append(said(" " * (left + 1) + corner + base * wide))
    lines.append(said(before + first + last.rjust(max(1, wide - len(first)))))
    if panel.x:
        name = paper.label(plot.x.full_label, wide)
        lines.append(said(before + " " * ((wide - width(name)) // 2) + name, "faint"))
    shades = list(zip(panel.bands, paper.either(SHADES, PLAIN_SHADES), strict=False))
    shaded = [[Span("  "), Span(shade * 2, style), Span(f" {paper.label(name)}")] for name, shade in shades]
    return lines + _legend(list(kept), fine, paper) + shaded


def _named(value: float, names: Sequence[str]) -> str:
    return names[round(value)] if names and 0 <= round(value) < len(names) else four(value)


def _place(name: str, lines: Mapping[str, object]) -> int:
    return list(lines).index(name) % 8 if name in lines else 0


def _ground(bands: Sequence[Sequence[tuple[float, float, float]]], wide: int, shades: str) -> np.ndarray:
    """Letters (TALL, wide) under the lines: a shade where a band lies. bands: shares (x, low, high) of the box."""
    letters = np.full((TALL, wide), " ")
    rows = (TALL - 1 - np.arange(TALL))[:, None]
    for band, shade in zip(bands, shades, strict=False):
        across, low, high = np.array(band).T
        columns = np.arange(round(across[0] * (wide - 1)), round(across[-1] * (wide - 1)) + 1)
        edges = [np.interp(columns / (wide - 1), across, edge) * (TALL - 1) for edge in (low, high)]
        inside = (rows >= np.round(edges[0])) & (rows <= np.round(edges[1]))
        letters[:, columns] = np.where(inside, shade, letters[:, columns])
    return letters


def _grid(shares: Points, wide: int, tall: int) -> np.ndarray:
    """Cells that a line through these points touches, the highest first."""
    grid = np.zeros((tall, wide), dtype=bool)
    places = [(a * (wide - 1), (1.0 - b) * (tall - 1)) for a, b in shares]
    for (a, b), (c, d) in zip(places, places[1:] or places, strict=False):
        steps = int(max(abs(c - a), abs(d - b))) + 1
        grid[np.round(np.linspace(b, d, steps + 1)).astype(int), np.round(np.linspace(a, c, steps + 1)).astype(int)] = (
            True
        )
    return grid


def _braille(grids: Sequence[np.ndarray], ground: np.ndarray, style: str) -> list[Line]:
    """Eight dots a letter; where lines cross, the later one has it, and where there is none, the ground."""
    tall, wide = grids[0].shape
    lines: list[Line] = []
    for top in range(0, tall, 4):
        spans = []
        for left in range(0, wide, 2):
            held = [(number, grid[top : top + 4, left : left + 2]) for number, grid in enumerate(grids)]
            number, dots = next(((n, part) for n, part in reversed(held) if part.any()), (0, None))
            if dots is None:
                spans.append(Span(str(ground[top // 4, left // 2]), style))
                continue
            code = sum(DOTS[r][c] for r, c in np.argwhere(dots))
            spans.append(Span(chr(0x2800 + code), f"series{number % 8}"))
        lines.append(spans)
    return lines


def _marked(grids: Sequence[np.ndarray], ground: np.ndarray) -> list[Line]:
    letters = ground.copy()
    for number, grid in enumerate(grids):
        letters[grid] = MARKS[number % len(MARKS)]
    return [said("".join(row)) for row in letters.tolist()]


def _legend(names: Sequence[str], fine: bool, paper: Paper) -> list[Line]:
    if len(names) == 1 and not names[0]:
        return []
    lines: list[Line] = []
    for number, name in enumerate(names):
        mark = Span("━━" if fine else MARKS[number % len(MARKS)], f"series{number % 8}")
        lines.append([Span("  "), mark, Span(f" {paper.label(name)}")])
    return lines
