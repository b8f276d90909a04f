"""A table in cells. Long texts are folded within their column; a table that fits no way is told row by row."""

from __future__ import annotations

from collections.abc import Sequence

from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import aligned_numbers, four
from regard.explain.view import Listing
from regard.terminal.label import padded, width, wrapped

LEAST_TEXT = 8


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
