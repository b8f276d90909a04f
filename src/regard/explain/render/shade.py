"""Shades of a heat map: where a weight lies on its scale, its colour, and fewer cells where there are many.

The colours go from almost white to almost black in even steps of lightness (CIELAB), so that they order as grey does
for everybody; blue for a weight, and orange for one below zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.explain.view import Heat

BLUE = ("#f2fbff", "#aae6f6", "#69ccee", "#15b1e2", "#0493c8", "#0a75ab", "#005a8f", "#203f67", "#22273b")
ORANGE = ("#fff8f1", "#ffd5ab", "#f6b170", "#e59044", "#ce7024", "#b25411", "#903d0e", "#692c11", "#3f1f15")
MASKED = "#dcdcdc"


@dataclass(frozen=True)
class Cells:
    """What is drawn of a heat map.

    row_places, column_places  where each row and column is in the whole, a block by its first.
    said                       how it differs from the whole, or nothing.
    """

    weights: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    row_places: Sequence[int]
    column_places: Sequence[int]
    said: Sequence[str] = ()


def reach(panel: Heat) -> float:
    """The largest value either way of a scale with zero in its middle."""
    return max(abs(panel.low), abs(panel.high)) or 1.0


def shares(panel: Heat, weights: np.ndarray) -> np.ndarray:
    """From 0 to 1, or from -1 to 1 where the scale goes below zero; what is masked stays NaN."""
    if panel.low < 0:
        return np.clip(weights / reach(panel), -1.0, 1.0)
    span = panel.high - panel.low
    return np.clip((weights - panel.low) / (span if span > 0 else 1.0), 0.0, 1.0)


def colours(share: np.ndarray) -> np.ndarray:
    """Red, green and blue, 0 to 255, of shares of any shape."""
    found = np.empty((*share.shape, 3))
    blank = np.isnan(share)
    held = np.nan_to_num(share)
    for ramp, chosen in ((BLUE, held >= 0), (ORANGE, held < 0)):
        stops = np.array([_channels(colour) for colour in ramp])
        places = np.linspace(0.0, 1.0, len(ramp))
        for channel in range(3):
            found[..., channel][chosen] = np.interp(np.abs(held[chosen]), places, stops[:, channel])
    found[blank] = _channels(MASKED)
    return np.round(found).astype(np.uint8)


def cells_of(panel: Heat, most_rows: int, most_columns: int) -> Cells:
    """A heat map of at most so many cells: the largest of each block stands for it."""
    weights = np.asarray(panel.weights, dtype=np.float64)
    rows, columns = list(panel.rows), list(panel.columns)
    n_rows, n_columns = weights.shape
    tall, wide = _block(n_rows, most_rows), _block(n_columns, most_columns)
    said = []
    if tall > 1 or wide > 1:
        weights = _largest(_largest(weights, tall, 0), wide, 1)
        said.append(f"{n_rows} x {n_columns} weights; each cell is the largest of {tall} x {wide}")
    if tall > 1:
        rows = _ranges(n_rows, tall)
    if wide > 1:
        columns = []
    return Cells(weights, rows, columns, range(0, n_rows, tall), range(0, n_columns, wide), said)


def strongest_columns(panel: Heat, most: int) -> Cells:
    """The columns that hold the largest weights, in their order."""
    weights = np.asarray(panel.weights, dtype=np.float64)
    highest = np.abs(np.nan_to_num(weights)).max(0, initial=0.0)
    places = sorted(np.argsort(-highest, kind="stable")[:most].tolist())
    said = [f"{len(places)} of {weights.shape[1]} columns, those with the largest weights"]
    columns = [str(panel.columns[place]) for place in places]
    return Cells(weights[:, places], panel.rows, columns, range(len(weights)), places, said)


def _block(count: int, most: int) -> int:
    return max(1, -(-count // max(1, most)))


def _largest(weights: np.ndarray, size: int, axis: int) -> np.ndarray:
    """Of each block along an axis the value furthest from zero; NaN only where all are."""
    if size == 1:
        return weights
    starts = np.arange(0, weights.shape[axis], size)
    high = np.fmax.reduceat(weights, starts, axis=axis)
    low = np.fmin.reduceat(weights, starts, axis=axis)
    return np.where(np.abs(low) > np.abs(high), low, high)


def _ranges(count: int, size: int) -> list[str]:
    return [f"{start}-{min(start + size, count) - 1}" for start in range(0, count, size)]


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
