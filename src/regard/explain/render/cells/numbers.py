"""Numbers and words in cells: a matrix below its equation, bars to an eighth of a column, a table, a text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import aligned_numbers, first_and_last, four
from regard.explain.view import Bars, Listing, Note, Numbers
from regard.terminal.label import padded, width, wrapped

MOST_ROWS = 40
MOST_LABEL = 12
EIGHTHS = " ▏▎▍▌▋▊▉"
MOST_WIDE = 60
LEAST_TEXT = 8
INDENT = 4


def numbers(panel: Numbers, paper: Paper) -> list[Line]:
    """Lines of a matrix; a marked number stands between asterisks, or in other colours."""
    lines: list[Line] = [said(text) for text in paper.prose(panel.equation, 4)] if panel.equation else []
    values = np.atleast_2d(np.asarray(panel.values, dtype=np.float64))
    if not values.size:
        return [*lines, said("(no numbers)", "faint")]
    places = first_and_last(len(values), MOST_ROWS)
    rows = [place for place in places if place is not None]
    names = [paper.label(panel.rows[row], max(6, paper.width // 4)) if panel.rows else "" for row in rows]
    left = max(width(name) for name in names)
    kept = _kept(panel, values[rows], left, paper)
    texts = {column: _column(panel, values, column, rows, paper) for column in kept if column is not None}
    gap = "..."
    table: list[Line] = []
    if panel.columns:
        heads = (gap if column is None else texts[column][0].text for column in kept)
        table.append([Span(padded("", left)), *(Span("  " + text, "faint") for text in heads)])
    for number, name in enumerate(names, start=1):
        cells = [Span(gap) if column is None else texts[column][number] for column in kept]
        table.append([Span(padded(name, left)), *(part for cell in cells for part in (Span("  "), cell))])
    if None in places:
        table.insert(len(table) - 1, said("..."))
    lines += table
    shown = (len(rows), sum(column is not None for column in kept))
    if shown != values.shape:
        lines.append(said(f"{shown[0]} x {shown[1]} of {values.shape[0]} x {values.shape[1]} numbers", "faint"))
    return lines


def _kept(panel: Numbers, values: np.ndarray, left: int, paper: Paper) -> list[int | None]:
    """The columns that fit: all, or the first few and the last."""
    count = values.shape[1]
    # No more columns than fit if each took three letters, so that a matrix of thousands is not written out to be cut.
    most = min(count, (paper.width - left) // 3)
    while True:
        kept = first_and_last(count, most)
        columns = [column for column in kept if column is not None]
        taken = sum(_wide(panel, values, column, paper) + 2 for column in columns) + (5 if None in kept else 0)
        if left + taken <= paper.width or most == 1:
            return kept
        most -= 1


def _wide(panel: Numbers, values: np.ndarray, column: int, paper: Paper) -> int:
    head = width(paper.label(panel.columns[column], MOST_LABEL)) if panel.columns else 0
    stars = 2 if not paper.colour and any(c == column for _, c in panel.marked) else 0
    return max(head, len(aligned_numbers(values[:, column])[0]) + stars)


def _column(panel: Numbers, values: np.ndarray, column: int, rows: Sequence[int], paper: Paper) -> list[Span]:
    """A head and the numbers below it, all of one width."""
    marked = {row for row, c in panel.marked if c == column}
    texts = aligned_numbers(values[rows, column])
    if marked and not paper.colour:
        texts = [_starred(text) if row in marked else f" {text} " for row, text in zip(rows, texts, strict=True)]
    head = paper.label(panel.columns[column], MOST_LABEL) if panel.columns else ""
    wide = max([width(head), *(len(text) for text in texts)])
    spans = [Span(text.ljust(wide), "marked" if row in marked else "") for row, text in zip(rows, texts, strict=True)]
    return [Span(padded(head, wide)), *spans]


def _starred(text: str) -> str:
    """A number between asterisks, where blanks were.

    >>> _starred(" 0.25 ")
    ' *0.25* '
    """
    return f" {text} ".replace(f" {text.strip()} ", f"*{text.strip()}*")


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


def listing(panel: Listing, paper: Paper) -> list[Line]:
    """Lines of a table, two blanks between columns."""
    if not panel.columns:
        return []
    names = [paper.label(name.rstrip("#")) for name in panel.columns]
    numeric = [name.endswith("#") for name in panel.columns]
    columns = [_texts([row[place] for row in panel.rows], paper) for place in range(len(names))]
    widths = [max(width(text) for text in (name, *column)) for name, column in zip(names, columns, strict=True)]
    room = paper.width - 2 * (len(widths) - 1)
    while sum(widths) > room:
        texts = [place for place, wide in enumerate(widths) if not numeric[place] and wide > LEAST_TEXT]
        if not texts:
            return _told(names, columns, paper)
        widest = max(texts, key=lambda place: widths[place])
        widths[widest] = max(LEAST_TEXT, widths[widest] - max(1, (sum(widths) - room) // len(texts)))
    lines = _folded(names, widths, numeric, "head")
    for row in zip(*columns, strict=True):
        lines += _folded(row, widths, numeric)
    return lines


def _texts(cells: Sequence[str | float | None], paper: Paper) -> list[str]:
    """Cells of one column; its numbers have their points below each other."""
    if cells and all(cell is None or isinstance(cell, (int, float)) for cell in cells):
        held = aligned_numbers([float("nan") if cell is None else float(cell) for cell in cells])
        return ["" if cell is None else text for cell, text in zip(cells, held, strict=True)]
    return [_text(cell, paper) for cell in cells]


def _text(cell: str | float | None, paper: Paper) -> str:
    if cell is None:
        return ""
    return paper.label(cell) if isinstance(cell, str) else four(float(cell))


def _folded(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool], style: str = "") -> list[Line]:
    """One row, as many lines high as its tallest cell."""
    folded = [wrapped(text, wide) if width(text) > wide else [text] for text, wide in zip(cells, widths, strict=True)]
    lines: list[Line] = []
    for number in range(max(len(parts) for parts in folded)):
        texts = (parts[number] if number < len(parts) else "" for parts in folded)
        line = (padded(text, wide, right) for text, wide, right in zip(texts, widths, numeric, strict=True))
        lines.append(said("  ".join(line), style))
    return lines


def _told(names: Sequence[str], columns: Sequence[Sequence[str]], paper: Paper) -> list[Line]:
    """A line for each cell, and an empty one after each row."""
    lines: list[Line] = []
    for row in zip(*columns, strict=True):
        for name, text in zip(names, row, strict=True):
            first, *others = wrapped(f"{name}: {text.strip()}", paper.width - 2)
            lines += [[Span(first)], *([Span("  " + other)] for other in others)]
        lines.append([])
    return lines[:-1]


def note(panel: Note, paper: Paper) -> list[Line]:
    """Lines of a text that fit."""
    if panel.style == "equation":
        return [said(line) for line in paper.prose(panel.text, INDENT)]
    if panel.style == "answer":
        mark = paper.either("▌ ", "> ")
        return [[Span(mark, "positive"), Span(line[len(mark) :])] for line in paper.prose(panel.text, len(mark))]
    return [said(line) for line in paper.prose(panel.text)]
