"""All heads of all layers at a glance, sorted by what they do.

    entropy   -sum_j a_ij log a_ij, the mean over rows, in bits: low is sharp
    distance  sum_j a_ij |i - j|: how far it looks on average
    sink      a_i1: what the first token gets
    diagonal  a_ii, and `before` a_i,i-1

Rows that can see one token only say nothing of a head, and are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from regard.explain.look import Look, Options, register_look
from regard.explain.site import on_side
from regard.explain.view import Heat, Listing, Panel, View
from regard.explain.weights import CAVEAT, attended, told_of
from regard.tasks.reading import Reading

COLUMNS = ("layer", "head", "entropy", "distance", "sink", "diagonal", "before")
PICTURED, LONGEST = 4, 128


def heads(reading: Reading, options: Options) -> View:
    """A row for each head, the sharpest first, and pictures of the first few."""
    there = on_side(reading, options.side)
    side = there[0].rows
    short = len(side) <= LONGEST

    def summary(weights: Tensor) -> tuple[np.ndarray, np.ndarray | None]:
        every = weights.float().cpu().numpy()
        return measures(every), every if short else None

    found, difference = attended(reading, there, summary)
    rows: list[list[Any]] = []
    pictures: dict[tuple[int, int], np.ndarray] = {}
    for site, (numbers, every) in zip(there, found, strict=True):
        for head, values in enumerate(numbers):
            rows.append([site.layer, head + 1, *(float(value) for value in values)])
            if every is not None:
                pictures[site.layer, head + 1] = every[head]
    rows.sort(key=lambda one: one[2])
    listing = Listing(
        title="Heads, the sharpest first",
        key="heads",
        columns=[f"{name}#" for name in COLUMNS],
        rows=rows,
        note="entropy in bits and distance in tokens, means over the rows of the map; sink: weight of the first token; "
        + told_of(difference),
    )
    shown: list[Panel] = [
        Heat(title=f"Layer {layer}, head {head}", weights=pictures[layer, head], rows=side.labels, columns=side.labels)
        for layer, head, *_ in rows[:PICTURED]
        if (layer, head) in pictures
    ]
    return View(f"All heads over the {side.name}", [listing, *shown], {"heads": len(rows)}, CAVEAT)


def measures(weights: np.ndarray) -> np.ndarray:
    """Entropy, distance, sink, diagonal and before of each head of weights (H, T, T); (H, 5)."""
    rows = np.arange(weights.shape[1])
    seen = (weights > 0).sum((0, 2)) > len(weights)
    kept = seen if seen.any() else np.ones_like(seen)
    logs = np.log2(np.where(weights > 0, weights, 1.0))
    far = np.abs(rows[:, None] - rows)
    before = np.zeros(weights.shape[:2])
    before[:, 1:] = weights[:, rows[1:], rows[:-1]]
    each = [
        -(weights * logs).sum(2),
        (weights * far).sum(2),
        weights[:, :, 0],
        weights[:, rows, rows],
        before,
    ]
    return np.stack([part[:, kept].mean(1) for part in each], 1)


register_look(
    Look("heads", "every head by its sharpness, reach and habits", heads, fits=lambda can: "attention" in can.shows)
)
