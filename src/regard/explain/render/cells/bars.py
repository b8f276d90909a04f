"""Bars in cells, to an eighth of a column; negative ones go to the left of zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import aligned_numbers
from regard.explain.view import Bars
from regard.terminal.label import padded, width

EIGHTHS = " ▏▎▍▌▋▊▉"
MOST_WIDE = 60


def bars(panel: Bars, paper: Paper) -> list[Line]:
    """A line for each name: the name, its value and its bar."""
    names = [paper.label(name, max(6, paper.width // 3)) for name in panel.names]
    lines = bar_lines(names, panel.values, paper)
    return [*lines, said(f"unit: {paper.label(panel.unit)}", "faint")] if panel.unit else lines


def bar_lines(names: Sequence[str], values: Sequence[float], paper: Paper) -> list[Line]:
    """The same for names that are fit to be printed."""
    if not names:
        return [said("(no values)", "faint")]
    left = max(width(name) for name in names)
    numbers = aligned_numbers(values)
    finite = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    room = max(4, min(MOST_WIDE, paper.width - left - len(numbers[0]) - 4))
    before = round(room * -low / (high - low)) if high > low else 0
    lines: list[Line] = []
    for name, number, value in zip(names, numbers, values, strict=True):
        spans = [Span(f"{padded(name, left)}  {number}  ")]
        if math.isfinite(value) and high > low:
            spans += _bar(value / (high - low) * room, before, paper)
        lines.append(spans)
    return lines


def _bar(length: float, before: int, paper: Paper) -> list[Span]:
    """A bar of so many columns that begins after `before` of them."""
    if length < 0:
        whole, rest = divmod(round(-length * 2), 2)
        ink = ("▐" * rest + "█" * whole) if paper.unicode else "#" * round(-length)
        return [Span(" " * (before - len(ink))), Span(ink, "negative")]
    whole, rest = divmod(round(length * 8), 8)
    ink = ("█" * whole + EIGHTHS[rest].strip()) if paper.unicode else "#" * round(length)
    return [Span(" " * before), Span(ink or (paper.either("▏", "|") if length else ""), "positive")]
