"""The numbers on their way through a model as an outline: each part with its shape, its size at the place and what it
is made of, and the likeliest answers at the end."""

from __future__ import annotations

from regard.explain.flow import Flow
from regard.explain.folding import Drawn, Fold, size_at
from regard.explain.render.cells.numbers import bar_lines
from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import four
from regard.terminal.label import padded, width

MOST_ANSWERS = 10
INDENT = 2
MOST_MADE_OF = 3


def flow(panel: Flow, paper: Paper) -> list[Line]:
    """Lines of an outline, and bars of the answers."""
    fold = Fold.of(panel)
    rows = [(box.depth, paper.label(_label(box)), _shape(box, paper), _size(panel, box)) for box in fold.boxes]
    left = min(paper.width // 2, max(INDENT * depth + width(label) for depth, label, *_ in rows))
    shapes = max(width(shape) for _, _, shape, _ in rows)
    lines: list[Line] = []
    heads: list[tuple[int, str]] = []
    for box, (depth, label, shape, size) in zip(fold.boxes, rows, strict=True):
        for number, head in box.heads:
            if (number, head) not in heads[: number + 1]:
                lines.append(said(" " * INDENT * number + paper.label(head), "head"))
        heads = list(box.heads)
        name = paper.label(" " * INDENT * depth + label, left) if depth == 0 else " " * INDENT * depth + label
        spans = [Span(f"{padded(name, left)}  {padded(shape, shapes)}  {padded(size, 9)}")]
        lines.append([*spans, Span(_made_of(fold, box, paper), "faint")])
    return [*lines, *_answers(panel, paper)]


def _label(box: Drawn) -> str:
    told = box.node.label.removeprefix(f"{box.label} ")
    return f"{box.label}: {told}" if box.count > 1 else box.label


def _shape(box: Drawn, paper: Paper) -> str:
    return paper.either(" × ", " x ").join(map(str, box.node.shape))


def _size(panel: Flow, box: Drawn) -> str:
    return four(float(f"{size_at(panel, box.node):.4g}")) if box.node.sizes else ""


def _made_of(fold: Fold, box: Drawn, paper: Paper) -> str:
    into = [band for band in fold.bands if band.target is box]
    names = [paper.label(band.source.label) + (" (before)" if band.is_back else "") for band in into]
    more = f" and {len(names) - MOST_MADE_OF} more" if len(names) > MOST_MADE_OF else ""
    return f"{paper.either('←', '<-')} {', '.join(names[:MOST_MADE_OF])}{more}" if names else ""


def _answers(panel: Flow, paper: Paper) -> list[Line]:
    answers = panel.answers
    if answers is None:
        return []
    place = min(panel.place, len(answers.names) - 1)
    names = [paper.label(name, max(6, paper.width // 3)) for name in answers.names[place][:MOST_ANSWERS]]
    told = answers.chances(place) if answers.kind == "chance" else answers.scores[place]
    return [[], *bar_lines(names, [float(value) for value in told[:MOST_ANSWERS]], paper)]
