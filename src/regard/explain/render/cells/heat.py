"""A heat map in cells: more ink, or a darker ground, is a larger weight; a sign stands before it where it has one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import four
from regard.explain.render.shade import Cells, cells_of, reach, shares, strongest_columns
from regard.explain.view import Heat
from regard.terminal.label import clusters, padded, width

LADDER = " ▁▂▃▄▅▆▇█"
ASCII_LADDER = " .:-=+*#@"
LEVELS = len(LADDER) - 1
MOST_ROWS = 64
MOST_ACROSS = 16  # columns of a label that is written from left to right
MOST_DOWN = 10  # letters of a label that is written from top to bottom
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


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
        lines.append([Span(f"{text} {edge}"), *_row(row, cell, panel.low < 0, paper), Span(edge)])
    named = [f"{what}: {name}" for what, name in (("rows", panel.row_name), ("columns", panel.column_name)) if name]
    remarks = [", ".join(named)] if named else []
    lines += [said(line, "faint") for text in (*remarks, *shown.said) for line in paper.prose(text)]
    return [*lines, _legend(panel, paper, bool(np.isnan(shown.weights).any()))]


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


def _row(row: np.ndarray, cell: int, signed: bool, paper: Paper) -> list[Span]:
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
        return [_numbers(shown.column_places, cell)]
    tall = max(len(letters) for letters in downward)
    raised = [[""] * (tall - len(letters)) + letters for letters in downward]
    return ["".join(padded(letters[line], cell) for letters in raised) for line in range(tall)]


def _numbers(places: Sequence[int], cell: int) -> str:
    room = len(str(places[-1])) + 1
    every = next((step for step in STEPS if step * cell >= room), len(places))
    texts = [str(place) for place in places[::every]]
    if (len(texts) - 1) * cell * every + len(texts[-1]) > len(places) * cell:
        texts.pop()
    return "".join(padded(text, cell * every) for text in texts)


def _legend(panel: Heat, paper: Paper, masked: bool) -> Line:
    ends = (-reach(panel), reach(panel)) if panel.low < 0 else (panel.low, panel.high)
    edge = paper.either("│", "|")
    before = f"{paper.label(panel.scale, paper.width // 2)}  {four(ends[0])} {edge}"
    after = f"{edge} {four(ends[1])}" + (f"   {paper.either('·', '~')} masked" if masked else "")
    sides = 2 if panel.low < 0 else 1
    room = (paper.width - width(before) - width(after)) // 2
    steps = next((steps for steps in (LEVELS, LEVELS // 2, LEVELS // 4) if sides * steps + 1 <= room), 1)
    scale = np.linspace(1.0 - sides, 1.0, sides * steps + 1)
    return [Span(before), *_row(scale, 2, panel.low < 0, paper), Span(after)]
