"""Overlay: a picture with weights over it, one map for each word that was written from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from regard.charts.png import in_text
from regard.explain.packed import packed
from regard.explain.view import Panel
from regard.tasks.reading import Reading

# Where nothing is looked at the picture is dimmed towards the first of these, and where most is, tinted with the other.
DIM, TINT = ((10, 12, 20), 0.55), ((255, 120, 10), 0.6)


@dataclass(frozen=True, kw_only=True)
class Overlay(Panel):
    """A picture (H, W, 3) of unsigned bytes, and weights (T, R, C) over its R x C squares for each of T words.

    scale  what a weight is.
    """

    kind: ClassVar[str] = "overlay"
    picture: np.ndarray
    weights: np.ndarray
    words: Sequence[str]
    scale: str = "weight"

    @property
    def grid(self) -> str:
        """The squares in words."""
        rows, columns = self.weights.shape[1:]
        return f"{rows} x {columns} squares"

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        """The picture as a PNG in base64, the weights packed, a row for each word."""
        told = Panel.to_dict(replace(self, picture=np.zeros(0), weights=np.zeros(0)))
        flat = self.weights.reshape(len(self.weights), -1)
        return told | {
            "picture": in_text(self.picture),
            "weights": packed(flat),
            "grid": list(self.weights.shape[1:]),
        }


def picture_of(reading: Reading) -> np.ndarray:
    """The picture that was read, (H, W, 3) of bytes: undoes what regard.layers.picture.as_input made of them."""
    seen = reading.inputs[0][0].permute(1, 2, 0).cpu().double().numpy()
    return np.clip(np.round((seen + 1) * 127.5), 0, 255).astype(np.uint8)


def veiled(picture: np.ndarray, weights: np.ndarray, side: int) -> np.ndarray:
    """A picture of `side` pixels under weights (R, C), dimmed where they are small, tinted where they are large."""
    share = soft(weights / max(float(np.nanmax(weights, initial=0.0)), 1e-12), side)[..., None]
    whole = np.stack([soft(picture[..., channel].astype(float), side) for channel in range(3)], -1)
    for (colour, strength), part in ((DIM, 1 - share), (TINT, share)):
        whole = whole + strength * part * (np.array(colour) - whole)
    return np.clip(np.round(whole), 0, 255).astype(np.uint8)


def soft(cells: np.ndarray, side: int) -> np.ndarray:
    """Cells (R, C) at side x side places, each the mean of the four nearest centres by how near they are.

    >>> soft(np.array([[0.0, 1.0]]), 4)[0].tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    found = cells
    for axis in (0, 1):
        count = cells.shape[axis]
        at = np.clip((np.arange(side) + 0.5) * count / side - 0.5, 0, count - 1)
        low = np.floor(at).astype(int)
        part = (at - low)[:, None] if axis == 0 else at - low
        high = np.minimum(low + 1, count - 1)
        found = np.take(found, low, axis) * (1 - part) + np.take(found, high, axis) * part
    return found
