"""What is forecast: quantiles over the horizon, what came, and what the same time a season before would have said.

naive_h = x_(h - season)     the last season of the past, repeated: what every forecast has to beat
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from regard.explain.look import Look, Options, points, register_look
from regard.explain.view import Curves, Listing, View
from regard.tasks.reading import Reading

PAST = 2  # horizons of the past that are shown before the forecast
MOST_TICKS = 7  # dates along the axis
NAIVE = "naive"
MIDDLE, BANDS = "q0.5", (("q0.1", "q0.9"), ("q0.3", "q0.7"))


def forecast(reading: Reading, _options: Options) -> View:
    """The middle quantile of each time of the horizon, bands of others around it, and the past before it."""
    about = reading.about
    values = about["invert"](reading.run()[0].cpu().double().numpy())  # (H, Q)
    quantiles = {reading.named(number): np.sort(values, -1)[:, number] for number in range(values.shape[1])}
    past, came = about["past"][-PAST * len(values) :], about["came"]
    times = (*about["past_times"][-len(past) :], *reading.side("horizon").labels)
    steps = np.arange(len(past), len(times))
    lines = {"past": points(np.arange(len(past)), past), "forecast": points(steps, quantiles[MIDDLE])}
    naive = _naive(about["past"], about.get("season", 0), len(values))
    for name, line in (("what came", came), (NAIVE, naive)):
        if (known := ~np.isnan(line)).any():
            lines[name] = points(steps[known], line[known])
    bands = [(low, high) for low, high in BANDS if low in quantiles and high in quantiles]
    curves = Curves(
        title=f"{about['unit']} over the horizon",
        lines=lines,
        x="time",
        y=about["unit"],
        note=_note(quantiles, came, bands[0]) + _note_of_naive(naive, came, about.get("season", 0)) if bands else "",
        key="forecast",
        bands={
            f"{low} to {high}": list(zip(map(float, steps), *(quantiles[q].tolist() for q in (low, high)), strict=True))
            for low, high in bands
        },
        around="forecast",
        x_names=times,
        x_ticks=_ticks(times),
    )
    columns = ["time", *(f"{name}#" for name in quantiles), f"{NAIVE}#", "came#"]
    rows = [
        [time, *(float(line[step]) for line in quantiles.values()), _cell(naive[step]), _cell(came[step])]
        for step, time in enumerate(reading.side("horizon").labels)
    ]
    numbers = Listing(title="Every quantile", columns=columns, rows=rows, key="quantiles")
    title = f"The {len(values)} values from {reading.side('horizon').labels[0]} on"
    caveat = "One forecast that was right or wrong does not tell whether its quantiles hold; many of them do."
    return View(title, [curves, numbers], caveat=caveat)


def _naive(past: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """The last season of a past, repeated over the horizon; nothing known where the past is shorter."""
    if not 1 <= season <= len(past):
        return np.full(horizon, np.nan)
    return np.resize(past[-season:], horizon)


def _cell(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _note_of_naive(naive: np.ndarray, came: np.ndarray, season: int) -> str:
    known = ~np.isnan(came) & ~np.isnan(naive)
    if not known.any():
        return ""
    error = float(np.abs(came[known] - naive[known]).mean())
    return f" {NAIVE.capitalize()}, the same time {season} steps before, misses it by {error:.3g}."


def _note(quantiles: dict[str, np.ndarray], came: np.ndarray, band: tuple[str, str]) -> str:
    known = ~np.isnan(came)
    if not known.any():
        return ""
    low, middle, high = (quantiles[name][known] for name in (band[0], MIDDLE, band[1]))
    inside = float(((came[known] >= low) & (came[known] <= high)).mean())
    error = float(np.abs(came[known] - middle).mean())
    return f"{inside:.0%} of what came lies between {band[0]} and {band[1]}; {MIDDLE} misses it by {error:.3g}."


def _ticks(times: Sequence[str]) -> list[tuple[float, str]]:
    """Places along the axis with their dates: midnights where there are several, else every so many times."""
    midnights = [(place, time[:-6]) for place, time in enumerate(times) if time.endswith(" 00:00")]
    found = midnights if len(midnights) > 1 else list(enumerate(times))
    return [(float(place), name) for place, name in found[:: math.ceil(len(found) / MOST_TICKS)]]


register_look(Look("forecast", "what is forecast, how surely, and what came", forecast, fits=lambda can: can.quantiles))
