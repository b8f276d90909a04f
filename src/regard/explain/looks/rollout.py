"""Rollout: what reaches a token through all layers, if attention were all that moves information.

A~_l = (A_l + I) / 2          the mean over heads, and the residual stream
R = A~_L .. A~_1              Abnar and Zuidema 2020
"""

from __future__ import annotations

import numpy as np

from regard.explain.look import Look, Options, numbers, place_of, register_look
from regard.explain.looks.attention import HEAVIEST
from regard.explain.site import on_side
from regard.explain.view import Bars, Heat, View
from regard.explain.weights import attended, told_of
from regard.tasks.reading import Reading

CAVEAT = "Rollout follows weights and the residual stream alone: values, nets and norms may pass on more, or nothing."


def rollout(reading: Reading, options: Options) -> View:
    """The map from inputs to the last layer."""
    found = on_side(reading, options.side)
    side = found[0].rows
    kept, difference = attended(reading, found, lambda weights: weights.mean(0).double().cpu().numpy())
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
        names=[f"{side.labels[number]} ({numbers(side)[number]})" for number in order],
        values=[float(matrix[place, number]) for number in order],
        unit="share",
    )
    return View("Attention rollout", [heat, bars], {"layers": len(layers)}, CAVEAT)


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
