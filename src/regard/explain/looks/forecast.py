"""What is forecast: quantiles over the horizon, and what came."""

from __future__ import annotations

import numpy as np

from regard.explain.look import Look, Options, points, register_look
from regard.explain.view import Curves, Listing, View
from regard.tasks.reading import Reading

PAST = 2  # horizons of the past that are shown before the forecast
SHOWN = (0.1, 0.5, 0.9)


def forecast(reading: Reading, _options: Options) -> View:
    """Low, middle and high quantiles of each time of the horizon."""
    about = reading.about
    values = about["invert"](reading.run()[0].double().cpu().numpy())  # (H, Q)
    quantiles = {reading.named(number): np.sort(values, -1)[:, number] for number in range(values.shape[1])}
    middle = [f"q{level:g}" for level in SHOWN if f"q{level:g}" in quantiles]
    past, came = about["past"][-PAST * len(values) :], about["came"]
    steps = np.arange(len(values)) + 1
    lines = {"past": points(np.arange(1 - len(past), 1), past)}
    lines |= {name: points(steps, quantiles[name]) for name in middle}
    known = ~np.isnan(came)
    if known.any():
        lines["what came"] = points(steps[known], came[known])
    curves = Curves(
        title=f"{about['unit']} over the horizon",
        lines=lines,
        x="steps from the last known value",
        y=about["unit"],
        note=_note(quantiles, came, middle),
        key="forecast",
    )
    columns = ["time", *(f"{name}#" for name in quantiles), "came#"]
    rows = [
        [time, *(float(line[step]) for line in quantiles.values()), None if np.isnan(came[step]) else float(came[step])]
        for step, time in enumerate(reading.side("horizon").labels)
    ]
    numbers = Listing(title="Every quantile", columns=columns, rows=rows, key="quantiles")
    title = f"The {len(values)} values from {reading.side('horizon').labels[0]} on"
    caveat = "One forecast that was right or wrong does not tell whether its quantiles hold; many of them do."
    return View(title, [curves, numbers], caveat=caveat)


def _note(quantiles: dict[str, np.ndarray], came: np.ndarray, shown: list[str]) -> str:
    known = ~np.isnan(came)
    if not known.any() or len(shown) < 3:
        return ""
    low, middle, high = (quantiles[name][known] for name in shown)
    inside = float(((came[known] >= low) & (came[known] <= high)).mean())
    error = float(np.abs(came[known] - middle).mean())
    return f"{inside:.0%} of what came lies between {shown[0]} and {shown[2]}; {shown[1]} misses it by {error:.3g}."


register_look(Look("forecast", "what is forecast, how surely, and what came", forecast, fits=lambda can: can.quantiles))
