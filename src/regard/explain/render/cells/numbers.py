"""A matrix of numbers in cells, below its equation; where it is too wide, the first columns and the last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import aligned_numbers, first_and_last
from regard.explain.view import Numbers
from regard.terminal.label import padded, width

MOST_ROWS = 40
MOST_LABEL = 12


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
