"""Self-attention as a map: which token looks at which.

All heads of all layers at a glance, sorted by what they do.

    entropy   -sum_j a_ij log a_ij, the mean over rows, in bits: low is sharp
    distance  sum_j a_ij |i - j|: how far it looks on average
    sink      a_i1: what the first token gets
    diagonal  a_ii, and `before` a_i,i-1

Rows that can see one token only say nothing of a head, and are left out.

Rollout: what reaches a token through all layers, if attention were all that moves information.

A~_l = (A_l + I) / 2          the mean over heads, and the residual stream
R = A~_L .. A~_1              Abnar and Zuidema 2020
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from regard.explain.habits import habit_names
from regard.explain.look import Look, Options, numbered, numbers, place_of, register_look
from regard.explain.site import on_side
from regard.explain.view import Bars, Heat, Listing, Panel, View
from regard.explain.weights import CAVEAT, Weights, attended, controls, told_of, weights_of
from regard.tasks.reading import Reading

HEAVIEST = 24
COLUMNS = ("layer", "head", "entropy", "distance", "sink", "diagonal", "before")
PICTURED, LONGEST = 4, 128
ROLLOUT_CAVEAT = (
    "Rollout follows weights and the residual stream alone: values, nets and norms may pass on more, or nothing."
)


def attention(reading: Reading, options: Options) -> View:
    """The map of one layer, and the row of one token."""
    found = weights_of(reading, "attention", options)
    of_all = "mean of heads" if options.head is None else f"head {options.head}"
    what = "weight x size of value" if options.by_values else "weight"
    heat = Heat(
        title=f"Layer {found.site.layer}, {of_all}",
        key="weights",
        weights=found.matrix,
        rows=found.rows,
        columns=found.columns,
        row_name="looks",
        column_name="at",
        high=most(found.matrix),
        scale=what,
        note=found.told,
    )
    about = {"layer": found.site.layer, "head": options.head, "heads": found.heads, "side": found.site.rows.name}
    bars = None if options.merge else row(found, place_of(found.site.rows, options.position), what)
    panels = [heat] if bars is None or not bars.names else [heat, bars]
    title = f"Attention over the {found.site.rows.name}"
    return View(title, panels, about, CAVEAT, controls(reading, "attention", found, options))


def most(matrix: np.ndarray) -> float:
    """Where the scale of a map ends: at the largest weight that is not that of a row with one choice only."""
    several = matrix[(matrix > 0).sum(1) > 1]
    return float(several.max()) if several.size else 1.0


def row(found: Weights, place: int, what: str) -> Bars:
    """What one position looks at, most first."""
    values = found.matrix[place]
    order = values.argsort()[::-1][:HEAVIEST]
    order = [int(number) for number in order if values[number] > 0]
    return Bars(
        title=f"What {found.rows[place]!r} looks at",
        key="row",
        names=[numbered(found.columns[number], found.numbers[number]) for number in order],
        values=[float(values[number]) for number in order],
        unit=what,
    )


register_look(
    Look(
        "attention",
        "which token looks at which, by layer and head",
        attention,
        fits=lambda can: "attention" in can.shows,
    )
)


def heads(reading: Reading, options: Options) -> View:
    """A row for each head, the sharpest first, and pictures of the first few."""
    there = on_side(reading, options.side)
    side = there[0].rows
    short = len(side) <= LONGEST

    def summary(weights: Tensor) -> tuple[np.ndarray, np.ndarray | None]:
        every = weights.float().cpu().numpy()
        return measures(every), every if short else None

    found, difference = attended(reading, there, summary)
    names = habit_names(reading, there)
    rows: list[list[Any]] = []
    pictures: dict[tuple[int, int], np.ndarray] = {}
    for number, (site, (measured, every)) in enumerate(zip(there, found, strict=True)):
        for head, values in enumerate(measured):
            name = [names[number][head]] if names else []
            rows.append([site.layer, head + 1, *(float(value) for value in values), *name])
            if every is not None:
                pictures[site.layer, head + 1] = every[head]
    rows.sort(key=lambda one: one[2])
    listing = Listing(
        title="Heads, the sharpest first",
        key="heads",
        columns=[*(f"{name}#" for name in COLUMNS), *(["habit"] if names else [])],
        rows=rows,
        note="entropy in bits and distance in tokens, means over the rows of the map; sink: weight of the first token; "
        + ("habit: what it does on random tokens that come twice, see the view induction; " if names else "")
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


def rollout(reading: Reading, options: Options) -> View:
    """The map from inputs to the last layer."""
    found = on_side(reading, options.side)
    side = found[0].rows
    kept, difference = attended(reading, found, lambda weights: weights.mean(0).cpu().double().numpy())
    layers: dict[tuple[str, int], list[np.ndarray]] = {}
    for site, weights in zip(found, kept, strict=True):
        layers.setdefault((site.kind, site.layer), []).append(weights)
    matrix = rolled([np.mean(both, axis=0) for both in layers.values()])  # both directions of a layer count alike
    place = place_of(side, options.position)
    order = [int(number) for number in matrix[place].argsort()[::-1][:HEAVIEST]]
    heat = Heat(
        title=f"What reaches each token through {len(layers)} layers",
        key="weights",
        weights=matrix,
        rows=side.labels,
        columns=side.labels,
        row_name="is made of",
        column_name="inputs",
        note=told_of(difference),
    )
    bars = Bars(
        title=f"What {side.labels[place]!r} is made of",
        key="row",
        names=[numbered(side.labels[number], numbers(side)[number]) for number in order],
        values=[float(matrix[place, number]) for number in order],
        unit="share",
    )
    return View("Attention rollout", [heat, bars], {"layers": len(layers)}, ROLLOUT_CAVEAT)


def rolled(layers: list[np.ndarray]) -> np.ndarray:
    """R of the weights (T, T) of each layer, the first one first."""
    found = np.eye(len(layers[0]))
    for weights in layers:
        found = (weights + np.eye(len(weights))) / 2 @ found
    return found


register_look(
    Look(
        "rollout",
        "what reaches a token through all layers of attention",
        rollout,
        fits=lambda can: "attention" in can.shows,
    )
)
