"""Gates: what a recurrence writes, keeps and shows at each token, and how large its memory is.

LSTM   c = f * c' + i * g          f keeps, i writes, o shows
GRU    h = z * h' + (1 - z) * n    z keeps and r resets; in Bahdanau et al. 2014 z takes the new instead
RNN    h = tanh(W h' + U x)        no gate: every token rewrites all of h
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from regard.core.trace import Trace
from regard.explain.asked import by_token, layer_control, points, side_control, spread
from regard.explain.look import Look, Options, numbers
from regard.explain.scan import moved, turned
from regard.explain.site import Site, directions, sites
from regard.explain.view import Curves, Heat, Panel, View
from regard.mixers.gru import Gru
from regard.tasks.reading import Reading

GATES = {
    "lstm": {"input_gate": "input gate i", "forget_gate": "forget gate f", "output_gate": "output gate o"},
    "gru": {"update_gate": "update gate z", "reset_gate": "reset gate r"},
}
OF_GATES = (
    "A gate that is open lets something through; what that is, and whether the answer needs it, the gate does not tell."
)
OF_UNITS = "A unit that moves is not thereby used: what the next layer reads of it, this does not tell."


def gates(reading: Reading, options: Options) -> View:
    """Gates by token, what each unit keeps, and the size of the memory."""
    found = sites(reading, "lstm", "gru")
    chosen = directions(found, options.layer, options.side)
    seen = reading.trace(_pattern(chosen))
    panels: list[Panel] = []
    for site in chosen:
        panels += [_mean_gates(site, seen), _kept_by_unit(site, seen)]
    panels.append(_size(chosen, seen))
    return _view("The gates", found, chosen, panels, OF_GATES)


def hidden(reading: Reading, options: Options) -> View:
    """The state of a plain recurrence by token, and how much each token changes it."""
    found = sites(reading, "rnn")
    chosen = directions(found, options.layer, options.side)
    seen = reading.trace(_pattern(chosen))
    panels: list[Panel] = []
    for site in chosen:
        panels += [_units(site, _seen(site, seen, "hidden")), _change(site, seen)]
    return _view("The hidden state", found, chosen, panels, OF_UNITS)


def kept(site: Site, seen: Trace) -> np.ndarray:
    """The share (T, units) of its memory that each unit keeps at each token."""
    if site.kind == "lstm":
        return _seen(site, seen, "forget_gate")
    update = _seen(site, seen, "update_gate")
    assert isinstance(site.module, Gru)
    return 1 - update if site.module.resets_first else update


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
    what = {"lstm": "an LSTM", "gru": "a GRU", "rnn": "an RNN"}[chosen[0].kind]
    both = ", both directions" if len(chosen) > 1 else ""
    title = f"{title} of layer {layer} of {what} over the {side}{both}"
    return View(title, panels, {"layer": layer, "side": side}, caveat, controls)


def _mean_gates(site: Site, seen: Trace) -> Heat:
    rows = [_seen(site, seen, tap).mean(1) for tap in GATES[site.kind]]
    names = list(GATES[site.kind].values())
    note = "Means over all units; 1 is open, 0 is shut."
    if isinstance(site.module, Gru):
        note += f" z near 1 {'takes the new' if site.module.resets_first else 'keeps the past'}."
    return Heat(
        title=f"Gates by token{_reading(site)}",
        weights=np.stack(rows),
        rows=names,
        columns=site.rows.labels,
        row_name="gate",
        column_name=site.rows.name,
        scale="mean over units",
        note=note,
        key=f"gates{_key(site)}",
    )


def _kept_by_unit(site: Site, seen: Trace) -> Heat:
    share = kept(site, seen)  # (T, units)
    means = share.mean(0)
    order = np.argsort(-means, kind="stable")
    shown = order[spread(len(order))]
    middle, longest = half_life(float(np.median(means))), half_life(float(means.max()))
    note = (
        f"{len(shown)} of {len(order)} units, by their mean. At its mean a unit in the middle loses half of its memory "
        f"in {middle:.2g} tokens, the one that keeps most in {longest:.2g}."
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
    what = "the cell c" if chosen[0].kind == "lstm" else "the hidden state h"
    return Curves(title=f"Size of {what}", lines=lines, x="position", y="length of the vector", key="size")


def _units(site: Site, states: np.ndarray) -> Heat:
    """The units that move most, by their mean."""
    moving = np.argsort(-states.std(0), kind="stable")[: len(spread(states.shape[1]))]
    shown = moving[np.argsort(-states[:, moving].mean(0), kind="stable")]
    return Heat(
        title=f"Units of h{_reading(site)}",
        weights=states[:, shown].T,
        rows=[f"unit {unit + 1}" for unit in shown.tolist()],
        columns=site.rows.labels,
        row_name="unit",
        column_name=site.rows.name,
        low=-1.0,
        scale="h",
        note=f"The {len(shown)} of {states.shape[1]} units that move most, by their mean.",
        key=f"hidden{_key(site)}",
    )


def _change(site: Site, seen: Trace) -> Panel:
    return by_token(
        site.rows,
        moved(site, seen)[1].tolist(),
        title=f"How much each token changes h{_reading(site)}",
        unit="change",
        note="|h - h'| / (|h| + |h'|): 0 where nothing changes, 1 where h' was nothing or h turns into its opposite.",
        key=f"change{_key(site)}",
    )


def _seen(site: Site, seen: Trace, tap: str) -> np.ndarray:
    """What a tap of a site saw, (T, units)."""
    return turned(site, seen[f"{site.name}.{tap}"][0])


def _pattern(chosen: Sequence[Site]) -> str:
    """Of the taps of a layer; both directions of one lie side by side."""
    return f"{chosen[0].name if len(chosen) == 1 else chosen[0].name.rpartition('.')[0]}.*"


def _reading(site: Site) -> str:
    return ", read backwards" if site.backward else ""


def _key(site: Site) -> str:
    return ".backward" if site.backward else ""


LOOKS = [
    Look("gates", "what a recurrence writes, keeps and shows at each token", gates, frozenset({"lstm", "gru"})),
    Look("hidden", "the state of a plain recurrence, and what changes it", hidden, frozenset({"rnn"})),
]
