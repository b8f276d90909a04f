"""Two rows of tokens whose links have numbers, the strongest 1; a number stands below both tokens that it joins."""

from __future__ import annotations

from collections.abc import Sequence

from regard.explain.render.cells.bars import bar_lines
from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.strength import strongest
from regard.explain.view import Links
from regard.terminal.label import padded, width

MOST_LINKS = 24
MOST_LABEL = 16


def links(panel: Links, paper: Paper) -> list[Line]:
    """Both rows, the links below them, and the pairs that count as aligned."""
    found, said_so = strongest(panel, MOST_LINKS)
    upper: list[list[int]] = [[] for _ in panel.upper]
    lower: list[list[int]] = [[] for _ in panel.lower]
    for number, (i, j, _) in enumerate(found, start=1):
        lower[i].append(number)
        upper[j].append(number)
    names = [paper.label(panel.upper_name or "upper", MOST_LABEL), paper.label(panel.lower_name or "lower", MOST_LABEL)]
    left = max(width(name) for name in names) + 2
    lines = _tokens(names[0], panel.upper, upper, left, paper)
    lines += [[], *_tokens(names[1], panel.lower, lower, left, paper), []]
    arrow, most = paper.either("→", "->"), max(3, min(MOST_LABEL, paper.width // 5))
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
        text, marks = paper.label(token, MOST_LABEL), ",".join(map(str, held))
        wide = max(width(text), len(marks)) + 2
        if width(above) + wide > paper.width and width(above) > left:
            lines += [[Span(above)], said(below, "faint")]
            above = below = " " * left
        above += padded(text, wide)
        below += padded(marks, wide)
    return [*lines, [Span(above)], said(below, "faint")]
