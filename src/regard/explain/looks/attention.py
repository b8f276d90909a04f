"""Self-attention as a map: which token looks at which."""

from __future__ import annotations

import numpy as np

from regard.explain.look import Look, Options, place_of, register_look
from regard.explain.view import Bars, Heat, View
from regard.explain.weights import CAVEAT, Weights, controls, weights_of
from regard.tasks.reading import Reading

HEAVIEST = 24


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
        names=[f"{found.columns[number]} ({found.numbers[number]})" for number in order],
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
