"""Small maps side by side, and a picture under the weights of each word, in a drawing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from regard.charts.drawing import INK, MARGIN, SMALL, Drawing, Picture, Words
from regard.explain.heads import SHORT
from regard.explain.overlay import Overlay, soft, veiled
from regard.explain.packed import by_block
from regard.explain.render.number import four
from regard.explain.render.shade import colours, shares
from regard.explain.thumbnails import SIDE, Thumbnails
from regard.explain.view import Heat
from regard.terminal.label import label

GAP, WIDEST = 10, 220
MOST_ACROSS, SMALLEST = 25, 11.0  # maps in a row, and letters under them
PIXELS, ACROSS, MOST_WORDS = 128, 5, 30  # of a picture under weights, how many stand in a row, and of how many words
LEAST = 120.0  # the side of each, at least


def thumbnails(panel: Thumbnails, drawing: Drawing) -> None:
    """Draw all maps, with the number of each head and its name in few letters."""
    if not len(panel.maps):
        drawing.paragraph("(no weights)", SMALL)
        return
    across = min(MOST_ACROSS, max(len(line) for line in panel.lines))
    wide = min(WIDEST, (drawing.room + GAP) / across - GAP)
    tall = wide * min(2.0, max(0.25, panel.maps.shape[1] / max(1, panel.maps.shape[2])))
    look = replace(SMALL, size=min(SMALL.size, max(SMALLEST, wide / 6.5)), colour=INK)
    for numbers in panel.lines:
        for first in range(0, len(numbers), across):
            for place, number in enumerate(numbers[first : first + across]):
                x = MARGIN + place * (wide + GAP)
                name = SHORT.get(panel.names[number], "")
                told = drawing.label(f"{panel.labels[number]} {name}".strip(), look, wide + GAP - 2)
                drawing.add(Picture(x, drawing.y, wide, tall, _pixels(panel, number), smooth=False))
                drawing.add(Words(x, drawing.y + tall + 1.15 * look.size, told, look))
            drawing.y += tall + 1.5 * look.size + GAP
    drawing.y += GAP


def _pixels(panel: Thumbnails, number: int) -> np.ndarray:
    """A small map in colours, at most as many cells either way as a page shows."""
    weights = panel.maps[number]
    block = -(-max(weights.shape) // SIDE)
    small = by_block(weights, block) if block > 1 else weights
    return colours(shares(Heat(weights=small, high=panel.highs[number]), small))


def overlay(panel: Overlay, drawing: Drawing) -> None:
    """Draw the picture alone, then under the weights of each word."""
    if not panel.weights.size:
        drawing.paragraph("(no weights)", SMALL)
        return
    plain = np.stack([soft(panel.picture[..., channel].astype(float), PIXELS) for channel in range(3)], -1)
    shown = [("the picture", np.round(plain).astype(np.uint8))]
    for word in range(min(MOST_WORDS, len(panel.words))):
        largest = four(round(float(np.nanmax(panel.weights[word], initial=0.0)), 3))
        told = f"{label(panel.words[word])}  up to {largest}"
        shown.append((told, veiled(panel.picture, panel.weights[word], PIXELS)))
    look = replace(SMALL, colour=INK)
    across = min(ACROSS, len(shown))
    wide = min((drawing.room + GAP) / across - GAP, max(LEAST, drawing.tallest - 5 * look.size))
    for number, (told, pixels) in enumerate(shown):
        x = MARGIN + number % across * (wide + GAP)
        drawing.add(Picture(x, drawing.y, wide, wide, pixels))
        drawing.add(Words(x, drawing.y + wide + 1.2 * look.size, drawing.label(told, look, wide), look))
        if number % across == across - 1 or number == len(shown) - 1:
            drawing.y += wide + 2 * look.size
    left_out = len(panel.words) + 1 - len(shown)
    more = f" {left_out} words more are left out." if left_out else ""
    drawing.paragraph(f"{panel.grid}, drawn softly; bright where most of the {panel.scale} is.{more}", SMALL)
