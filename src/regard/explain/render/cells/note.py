"""Words in cells: a paragraph, an equation set off from the margin, or an answer with a mark before it."""

from __future__ import annotations

from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.view import Note

INDENT = 4


def note(panel: Note, paper: Paper) -> list[Line]:
    """Lines of a text that fit."""
    if panel.style == "equation":
        return [said(line) for line in paper.prose(panel.text, INDENT)]
    if panel.style == "answer":
        mark = paper.either("▌ ", "> ")
        return [[Span(mark, "positive"), Span(line[len(mark) :])] for line in paper.prose(panel.text, len(mark))]
    return [said(line) for line in paper.prose(panel.text)]
