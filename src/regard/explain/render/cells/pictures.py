"""Small maps side by side, and the weights over a picture word by word, in cells of a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from regard.explain.heads import SHORT
from regard.explain.overlay import Overlay
from regard.explain.render.cells.maps import shaded_row
from regard.explain.render.cells.paper import Line, Paper, Span, said
from regard.explain.render.number import four
from regard.explain.render.shade import cells_of, shares
from regard.explain.thumbnails import Thumbnails
from regard.explain.view import Heat
from regard.terminal.label import padded

WIDEST, NARROWEST = 16, 5  # columns of a small map
TALLEST = 14  # rows and columns of the squares of a picture
MOST_WORDS = 24


def thumbnails(panel: Thumbnails, paper: Paper) -> list[Line]:
    """Lines of small maps, with the number of each head and its name in few letters."""
    if not len(panel.maps):
        return [said("(no weights)", "faint")]
    across = max(len(line) for line in panel.lines)
    wide = min(WIDEST, max(NARROWEST, paper.width // across - 1))
    most = max(1, (paper.width + 1) // (wide + 1))
    lines: list[Line] = []
    for numbers in panel.lines:
        for first in range(0, len(numbers), most):
            lines += _row(panel, numbers[first : first + most], wide, paper)
    counts = Counter(name for name in panel.names if name)
    told = ", ".join(f"{SHORT.get(name, name)}: {name} ({count})" for name, count in counts.most_common())
    return lines + [said(line, "faint") for line in (paper.prose(told) if told else [])]


def _row(panel: Thumbnails, numbers: Sequence[int], wide: int, paper: Paper) -> list[Line]:
    maps = [_small(panel.maps[number], panel.highs[number], wide, max(2, wide // 2), paper) for number in numbers]
    heads = "".join(padded(panel.labels[number], wide + 1) for number in numbers)
    names = "".join(padded(SHORT.get(panel.names[number], "")[:wide], wide + 1) for number in numbers)
    return [said(heads), said(names, "faint"), *_beside(maps, wide), []]


def _small(weights: np.ndarray, high: float, wide: int, tall: int, paper: Paper) -> list[Line]:
    """A map of at most so many cells, each a letter wide."""
    panel = Heat(weights=weights, high=high)
    shown = shares(panel, cells_of(panel, tall, wide).weights)
    return [shaded_row(row, 1, False, paper) for row in shown]


def _beside(maps: Sequence[Sequence[Line]], wide: int) -> list[Line]:
    """Maps beside each other, each as wide, with a gap."""
    lines: list[Line] = []
    for parts in zip_longest(*maps, fillvalue=()):
        line: list[Span] = []
        for part in parts:
            line += [*part, Span(" " * (wide + 1 - sum(len(span.text) for span in part)))]
        lines.append(line)
    return lines


def overlay(panel: Overlay, paper: Paper) -> list[Line]:
    """The squares of the picture for each word, as many beside each other as fit, and where most of its weight is."""
    if not panel.weights.size:
        return [said("(no weights)", "faint")]
    rows, columns = (min(TALLEST, count) for count in panel.weights.shape[1:])
    wide = 2 * columns
    most = max(1, (paper.width + 1) // (wide + 1))
    words = list(range(min(MOST_WORDS, len(panel.words))))
    lines: list[Line] = []
    for first in range(0, len(words), most):
        some = words[first : first + most]
        heads = "".join(padded(paper.label(panel.words[word], wide), wide + 1) for word in some)
        lines += [said(heads, "head"), *_beside([_squares(panel, word, rows, columns, paper) for word in some], wide)]
        lines.append(said("".join(padded(where(panel, word), wide + 1) for word in some), "faint"))
        lines.append([])
    told = f"The {panel.grid} of the picture, each word to its own largest {panel.scale}."
    if len(words) < len(panel.words):
        told += f" {len(words)} of {len(panel.words)} words."
    return lines + [said(line, "faint") for line in paper.prose(told)]


def _squares(panel: Overlay, word: int, rows: int, columns: int, paper: Paper) -> list[Line]:
    weights = panel.weights[word]
    shown = Heat(weights=weights, high=float(np.nanmax(weights, initial=0.0)) or 1.0)
    return [shaded_row(row, 2, False, paper) for row in shares(shown, cells_of(shown, rows, columns).weights)]


def where(panel: Overlay, word: int) -> str:
    """The largest weight of a word, and its row and column, both from 1 on."""
    weights = np.nan_to_num(panel.weights[word])
    row, column = np.unravel_index(int(weights.argmax()), weights.shape)
    return f"{row + 1},{column + 1} {four(round(float(weights.max()), 2))}"
