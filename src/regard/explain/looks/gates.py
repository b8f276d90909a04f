"""Gates: what a recurrence writes, keeps and shows at each token, and how large its memory is.

LSTM   c = f * c' + i * g          f keeps, i writes, o shows
GRU    h = z * h' + (1 - z) * n    z keeps and r resets; in Bahdanau et al. 2014 z takes the new instead
RNN    h = tanh(W h' + U x)        no gate: every token rewrites all of h
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from regard.core.tap import Trace
from regard.explain.look import (
    Look,
    Options,
    by_token,
    layer_control,
    numbers,
    points,
    register_look,
    side_control,
    spread,
)
from regard.explain.scan import moved, states, turned
from regard.explain.site import GATES, Site, directions, sites
from regard.explain.view import Curves, Heat, Panel, View
from regard.tasks.reading import Reading

OF_GATES = (
    "A gate that is open lets something through; what that is, and whether the answer needs it, the gate does not tell."
)
OF_UNITS = "A unit that moves is not thereby used: what the next layer reads of it, this does not tell."


def gates(reading: Reading, options: Options) -> View:
    """Gates by token, what each unit keeps, and the size of the memory."""
    found = sites(reading, "gate")
    chosen = directions(found, options.layer, options.side)
    seen = reading.trace(_pattern(chosen))
    panels: list[Panel] = []
    for site in chosen:
        share = kept(site, seen)
        panels += [_mean_gates(site, seen), *([] if share is None else [_kept_by_unit(site, share)])]
    if "state" in chosen[0].shows:
        panels.append(_size(chosen, seen))
    return _view("The gates", found, chosen, panels, OF_GATES)


def hidden(reading: Reading, options: Options) -> View:
    """The state of a plain recurrence by token, and how much each token changes it."""
    found = sites(reading, "units")
    chosen = directions(found, options.layer, options.side)
    seen = reading.trace(_pattern(chosen))
    panels: list[Panel] = []
    for site in chosen:
        after = turned(site, states(site, seen))
        panels += [_units(site, after.reshape(len(after), -1)), _change(site, seen)]
    return _view("The hidden state", found, chosen, panels, OF_UNITS)


def kept(site: Site, seen: Trace) -> np.ndarray | None:
    """The share (T, units) of its memory that each unit keeps at each token; None where no gate says it."""
    known = site.mechanism
    if known is not None and known.kept is not None:
        return turned(site, known.kept(site, seen))
    return turned(site, seen[site.tap("keep")][0]) if site.taps("keep") else None


def half_life(share: float) -> float:
    """Tokens after which half is left of what is kept by this share at each.

    >>> half_life(0.5), half_life(1.0)
    (1.0, inf)
    """
    if share <= 0:
        return 0.0
    return math.inf if share >= 1 else math.log(0.5) / math.log(share)


def _view(title: str, found: list[Site], chosen: list[Site], panels: list[Panel], caveat: str) -> View:
    layer, side = chosen[0].layer, chosen[0].rows.name
    sides = [site.rows.name for site in found]
    controls = [layer_control(found, side, layer), *([side_control(sides, side)] if len(set(sides)) > 1 else [])]
    known = chosen[0].mechanism
    what = known.named if known is not None else chosen[0].kind
    both = ", both directions" if len(chosen) > 1 else ""
    title = f"{title} of layer {layer} of {what} over the {side}{both}"
    return View(title, panels, {"layer": layer, "side": side}, caveat, controls)


def _mean_gates(site: Site, seen: Trace) -> Heat:
    taps = site.taps(*GATES)
    rows = [turned(site, seen[tap][0]).mean(1) for tap in taps.values()]
    names = [site.called(own) for own in taps]
    known = site.mechanism
    told = ["Means over all units; 1 is open, 0 is shut."]
    told += [known.about(site.module)] if known is not None and known.about is not None else []
    return Heat(
        title=f"Gates by token{_reading(site)}",
        weights=np.stack(rows),
        rows=names,
        columns=site.rows.labels,
        row_name="gate",
        column_name=site.rows.name,
        scale="mean over units",
        note=" ".join(told),
        key=f"gates{_key(site)}",
    )


def _kept_by_unit(site: Site, share: np.ndarray) -> Heat:
    means = share.mean(0)
    order = np.argsort(-means, kind="stable")
    shown = order[spread(len(order))]
    middle, longest = half_life(float(np.median(means))), half_life(float(means.max()))
    note = (
        f"{len(shown)} of {len(order)} units, by their mean. At its mean a unit in the middle loses half of its memory "
        f"in {middle:,.1f} tokens, the one that keeps most in {longest:,.1f}."
    )
    return Heat(
        title=f"What units keep of their memory{_reading(site)}",
        weights=share[:, shown].T,
        rows=[f"unit {unit + 1}" for unit in shown.tolist()],
        columns=site.rows.labels,
        row_name="unit",
        column_name=site.rows.name,
        scale="share kept",
        note=note,
        key=f"kept{_key(site)}",
    )


def _size(chosen: Sequence[Site], seen: Trace) -> Curves:
    lines = {}
    for site in chosen:
        name = "backward" if site.backward else "forward" if len(chosen) > 1 else "memory"
        lines[name] = points(numbers(site.rows), moved(site, seen)[0])
    what = _state(chosen[0])
    return Curves(title=f"Size of {what}", lines=lines, x="position", y="length of the vector", key="size")


def _units(site: Site, states: np.ndarray) -> Heat:
    """The units (T, units) that move most, by their mean."""
    bound = max(1.0, float(np.abs(states).max()))
    moving = np.argsort(-states.std(0), kind="stable")[: len(spread(states.shape[1]))]
    shown = moving[np.argsort(-states[:, moving].mean(0), kind="stable")]
    return Heat(
        title=f"Units of {_state(site)}{_reading(site)}",
        weights=states[:, shown].T,
        rows=[f"unit {unit + 1}" for unit in shown.tolist()],
        columns=site.rows.labels,
        row_name="unit",
        column_name=site.rows.name,
        low=-bound,
        high=bound,
        scale="value",
        note=f"The {len(shown)} of {states.shape[1]} units that move most, by their mean.",
        key=f"hidden{_key(site)}",
    )


def _change(site: Site, seen: Trace) -> Panel:
    return by_token(
        site.rows,
        moved(site, seen)[1].tolist(),
        title=f"How much each token changes {_state(site)}{_reading(site)}",
        unit="change",
        note="|h - h'| / (|h| + |h'|): 0 where nothing changes, 1 where h' was nothing or h turns into its opposite.",
        key=f"change{_key(site)}",
    )


def _state(site: Site) -> str:
    """What its state is called."""
    return next((site.called(own) for own in site.taps("state")), "the state")


def _pattern(chosen: Sequence[Site]) -> str:
    """Of the taps of a layer; both directions of one lie side by side."""
    return f"{chosen[0].name if len(chosen) == 1 else chosen[0].name.rpartition('.')[0]}.*"


def _reading(site: Site) -> str:
    return ", read backwards" if site.backward else ""


def _key(site: Site) -> str:
    return ".backward" if site.backward else ""


register_look(
    Look(
        "gates",
        "what a recurrence writes, keeps and shows at each token",
        gates,
        fits=lambda can: "gate" in can.shows,
    )
)
register_look(
    Look(
        "hidden",
        "the state of a plain recurrence, and what changes it",
        hidden,
        fits=lambda can: "units" in can.shows,
    )
)
