"""Rollout: what reaches a token through all layers, if attention were all that moves information.

A~_l = (A_l + I) / 2          the mean over heads, and the residual stream
R = A~_L .. A~_1              Abnar and Zuidema 2020
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from regard.core.tap import record
from regard.core.trace import apart, plain, resting
from regard.explain.look import Look, Options, numbers, place_of
from regard.explain.looks.attention import HEAVIEST
from regard.explain.site import on_side
from regard.explain.view import Bars, Heat, View
from regard.explain.weights import told_of
from regard.tasks.reading import Reading

CAVEAT = "Rollout follows weights and the residual stream alone: values, nets and norms may pass on more, or nothing."


def rollout(reading: Reading, options: Options) -> View:
    """The map from inputs to the last layer."""
    found = on_side(reading, options.side)
    side, names = found[0].rows, {f"{site.name}.weights" for site in found}

    def mean(weights: Tensor) -> np.ndarray:
        return weights[0].mean(0).double().cpu().numpy()

    fast = reading.run()
    with resting(reading.model), record(plain(reading.model), "*.weights", mean) as seen:
        difference = apart(reading.run(), fast)
    matrix = rolled([entries[-1] for name, entries in seen.items() if name in names])
    place = place_of(side, options.position)
    order = [int(number) for number in matrix[place].argsort()[::-1][:HEAVIEST]]
    heat = Heat(
        title=f"What reaches each token through {len(names)} layers",
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
    return View("Attention rollout", [heat, bars], {"layers": len(names)}, CAVEAT)


def rolled(layers: list[np.ndarray]) -> np.ndarray:
    """R of the weights (T, T) of each layer, the first one first."""
    found = np.eye(len(layers[0]))
    for weights in layers:
        found = (weights + np.eye(len(weights))) / 2 @ found
    return found


LOOKS = [Look("rollout", "what reaches a token through all layers of attention", rollout, frozenset({"attention"}))]
