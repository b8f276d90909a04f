"""Lags: what a linear forecast looks back at, and what of the known it goes by, for every time ahead.

What is shown of a column is by how much the forecast moves, in the model's own unit, when the column moves by one
deviation of its own: a large weight on something that hardly ever changes counts for little.
"""

from __future__ import annotations

import numpy as np

from regard.explain.look import Look, Options, register_look
from regard.explain.view import Bars, Heat, Panel, View
from regard.fitting.lag_weights import LagGroup, LooksBack
from regard.tasks.reading import Reading

UNIT = "change of the forecast by one deviation, in deviations of the value"
CAVEAT = (
    "Neighbouring hours and columns move together, and a penalty chooses among them: a weight of 0 does not say that a "
    "column has no bearing on the value, only that others say the same."
)


def lags(reading: Reading, _options: Options) -> View:
    """How every time ahead depends on what is seen: a map for each day before and each known column."""
    model = reading.owner.model
    assert isinstance(model, LooksBack)
    found = model.lag_weights(reading.owner.processor.number_names)
    largest = max((float(np.abs(part).max(initial=0.0)) for _, part in found), default=0.0) or 1.0
    weight = {group.name: float(np.abs(part).sum(1).mean()) for group, part in found}
    panels: list[Panel] = [
        Bars(
            title="How much each part moves the forecast",
            key="parts",
            names=list(weight),
            values=list(weight.values()),
            unit=f"mean over the horizon of the sum of sizes; {UNIT}",
        )
    ]
    ahead = tuple(str(step + 1) for step in range(len(found[0][1])))
    panels += [_map(number, group, part, ahead, largest) for number, (group, part) in enumerate(found)]
    return View("What each time ahead looks at", panels, {"parts": weight}, CAVEAT)


def _map(number: int, group: LagGroup, part: np.ndarray, ahead: tuple[str, ...], largest: float) -> Heat:
    return Heat(
        title=group.name.capitalize(),
        key=f"map-{number}",
        weights=part,
        rows=ahead,
        columns=group.columns,
        row_name="step ahead",
        column_name=group.name,
        low=-largest,
        high=largest,
        scale=UNIT,
    )


register_look(
    Look("lags", "which days before and which known columns count", lags, fits=lambda can: "lags" in can.shows)
)
