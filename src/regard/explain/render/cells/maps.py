"""Who looks at whom in cells: a heat map, where more ink or a darker ground is a larger weight, and numbered links."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from regard.explain.render.cells.numbers import bar_lines
from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import four
from regard.explain.render.shade import Cells, cells_of, reach, shares, strongest_columns
from regard.explain.view import Heat, Links
from regard.terminal.label import clusters, padded, width

LADDER = " ▁▂▃▄▅▆▇█"
ASCII_LADDER = " .:-=+*#@"
LEVELS = len(LADDER) - 1
MOST_ROWS = 64
MOST_ACROSS = 16  # columns of a label that is written from left to right
MOST_DOWN = 10  # letters of a label that is written from top to bottom
NUMBERED = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
MOST_LINKS = 24
STRONG = 0.25


def heat(panel: Heat, paper: Paper) -> list[Line]:
    """Lines of a heat map."""
    if not np.size(panel.weights):
        return [said("(no weights)", "faint")]
    shown, left, cell = _fitted(panel, paper)
    names = shown.rows or [str(place) for place in shown.row_places]
    labels = [padded(paper.label(text, left), left) for text in names]
    edge = paper.either("│", "|")
    lines: list[Line] = [said(" " * (left + 2) + text) for text in _head(shown, cell, paper)]
    for text, row in zip(labels, shares(panel, shown.weights), strict=True):
        lines.append([Span(f"{text} {edge}"), *shaded_row(row, cell, panel.low < 0, paper), Span(edge)])
    named = [f"{what}: {name}" for what, name in (("rows", panel.row_name), ("columns", panel.column_name)) if name]
    remarks = [", ".join(named)] if named else []
    lines += [said(line, "faint") for text in (*remarks, *shown.said) for line in paper.prose(text)]
    return [*lines, _scale(panel, paper, bool(np.isnan(shown.weights).any()))]


def _fitted(panel: Heat, paper: Paper) -> tuple[Cells, int, int]:
    """What is shown, columns of the row labels, and columns of a cell."""
    signed = panel.low < 0 and not paper.colour
    n_columns = np.shape(panel.weights)[1]
    digits = len(str(len(panel.weights)))
    few_rows = len(panel.weights) <= MOST_ROWS
    left = max((width(paper.label(text)) for text in panel.rows), default=digits) if few_rows else 2 * digits + 1
    left = min(left, max(4, paper.width // 4))
    room = max(2, paper.width - left - 3)
    most = room // (2 if signed else 1)
    if most < n_columns <= 2 * most and panel.columns and few_rows:
        shown = strongest_columns(panel, most)
    else:
        shown = cells_of(panel, MOST_ROWS, most)
    count = shown.weights.shape[1]
    widest = max((width(paper.label(text)) for text in shown.columns), default=1)
    widths = (3, 2) if signed else (2, 1)
    if widest <= MOST_ACROSS:
        widths = (max(widths[0], widest + 1), *widths)
    return shown, left, next((cell for cell in widths if cell * count <= room), widths[-1])


def shaded_row(row: np.ndarray, cell: int, signed: bool, paper: Paper) -> list[Span]:
    """Cells of one row; neighbours of the same look are one span."""
    spans: list[Span] = []
    for share in row.tolist():
        span = _shaded(share, cell, signed, paper)
        if spans and spans[-1].style == span.style:
            span = Span(spans.pop().text + span.text, span.style)
        spans.append(span)
    return spans


def _shaded(share: float, cell: int, signed: bool, paper: Paper) -> Span:
    if math.isnan(share):
        return Span(padded(paper.either("·", "~"), cell))
    level = round(abs(share) * LEVELS)
    if paper.colour:
        return Span(" " * cell, f"shade{'-' if share < 0 and level else ''}{level}")
    ink = (LADDER if paper.unicode else ASCII_LADDER)[level]
    if signed:
        sign = " " if not level else "-" if share < 0 else "+"
        return Span(padded(sign + ink * max(1, cell - 2), cell))
    # A gap between wide cells, so that equal neighbours can be counted.
    return Span(ink * (cell - 1) + " " if cell > 2 else ink * cell)


def _head(shown: Cells, cell: int, paper: Paper) -> list[str]:
    """Labels of the columns: across where they fit, else from top to bottom, else numbers of some."""
    texts = [paper.label(text) for text in shown.columns]
    if texts and max(width(text) for text in texts) < cell:
        return ["".join(padded(text, cell) for text in texts)]
    downward = [clusters(paper.label(text, MOST_DOWN)) for text in shown.columns]
    if not texts or any(width(one) > cell for letters in downward for one in letters):
        return [_column_numbers(shown.column_places, cell)]
    tall = max(len(letters) for letters in downward)
    raised = [[""] * (tall - len(letters)) + letters for letters in downward]
    return ["".join(padded(letters[line], cell) for letters in raised) for line in range(tall)]


def _column_numbers(places: Sequence[int], cell: int) -> str:
    room = len(str(places[-1])) + 1
    every = next((step for step in NUMBERED if step * cell >= room), len(places))
    texts = [str(place) for place in places[::every]]
    if (len(texts) - 1) * cell * every + len(texts[-1]) > len(places) * cell:
        texts.pop()
    return "".join(padded(text, cell * every) for text in texts)


def _scale(panel: Heat, paper: Paper, masked: bool) -> Line:
    ends = (-reach(panel), reach(panel)) if panel.low < 0 else (panel.low, panel.high)
    edge = paper.either("│", "|")
    before = f"{paper.label(panel.scale, paper.width // 2)}  {four(ends[0])} {edge}"
    after = f"{edge} {four(ends[1])}" + (f"   {paper.either('·', '~')} masked" if masked else "")
    sides = 2 if panel.low < 0 else 1
    room = (paper.width - width(before) - width(after)) // 2
    steps = next((steps for steps in (LEVELS, LEVELS // 2, LEVELS // 4) if sides * steps + 1 <= room), 1)
    scale = np.linspace(1.0 - sides, 1.0, sides * steps + 1)
    return [Span(before), *shaded_row(scale, 2, panel.low < 0, paper), Span(after)]


def links(panel: Links, paper: Paper) -> list[Line]:
    """Both rows, the links below them, and the pairs that count as aligned."""
    found, said_so = strongest(panel, MOST_LINKS)
    upper: list[list[int]] = [[] for _ in panel.upper]
    lower: list[list[int]] = [[] for _ in panel.lower]
    for number, (i, j, _) in enumerate(found, start=1):
        lower[i].append(number)
        upper[j].append(number)
    names = [
        paper.label(panel.upper_name or "upper", MOST_ACROSS),
        paper.label(panel.lower_name or "lower", MOST_ACROSS),
    ]
    left = max(width(name) for name in names) + 2
    lines = _tokens(names[0], panel.upper, upper, left, paper)
    lines += [[], *_tokens(names[1], panel.lower, lower, left, paper), []]
    arrow, most = paper.either("→", "->"), max(3, min(MOST_ACROSS, paper.width // 5))
    ends = [(paper.label(panel.lower[i], most), paper.label(panel.upper[j], most)) for i, j, _ in found]
    told = [f"{number:>2}  {one} {arrow} {other}" for number, (one, other) in enumerate(ends, start=1)]
    lines += bar_lines(told, [weight for *_, weight in found], paper)
    lines += [said(text, "faint") for text in said_so]
    if panel.pairs:
        text = " ".join(f"{j}-{i}" for i, j in panel.pairs)
        lines += [said(line) for line in paper.prose(f"pairs ({names[0]}-{names[1]}, from 0): {text}")]
    return lines


def _tokens(name: str, tokens: Sequence[str], numbers: list[list[int]], left: int, paper: Paper) -> list[Line]:
    """Tokens and below each the numbers of its links, in as many bands as needed."""
    lines: list[Line] = []
    above, below = padded(name, left), " " * left
    for token, held in zip(tokens, numbers, strict=True):
        text, marks = paper.label(token, MOST_ACROSS), ",".join(map(str, held))
        wide = max(width(text), len(marks)) + 2
        if width(above) + wide > paper.width and width(above) > left:
            lines += [[Span(above)], said(below, "faint")]
            above = below = " " * left
        above += padded(text, wide)
        below += padded(marks, wide)
    return [*lines, [Span(above)], said(below, "faint")]


def strongest(panel: Links, most: int) -> tuple[list[tuple[int, int, float]], list[str]]:
    """(lower, upper, weight), the strongest first, and what was left out in words.

    The pairs of the panel where it has any; else of each lower token its strongest link and those of a quarter or more.
    """
    weights = np.nan_to_num(np.asarray(panel.weights, dtype=np.float64))
    if panel.pairs:
        places = list(dict.fromkeys((int(i), int(j)) for i, j in panel.pairs))
    elif weights.size:
        chosen = weights >= STRONG
        chosen[np.arange(len(weights)), weights.argmax(1)] |= weights.max(1) > 0
        places = [(int(i), int(j)) for i, j in np.argwhere(chosen)]
    else:
        places = []
    found = sorted(((i, j, float(weights[i, j])) for i, j in places), key=lambda link: (-link[2], link[0], link[1]))
    if len(found) <= most:
        return found, []
    return found[:most], [f"{most} of {len(found)} links, the strongest"]
