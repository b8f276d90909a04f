"""Neurons: the hidden units of a feed-forward net, what raises each and what it writes.

    y = sum_n a_n w_n          a_n the value of unit n, w_n its row of the map that writes to the stream

What a unit writes is told in tokens: by how much each logit would change for a little more of w_n in the stream that
the last norm and the head read, with nothing between (Geva et al. 2022; the direct path alone).

    g_n = (head(norm(x + e w_n)) - head(norm(x - e w_n))) / 2e
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.core.device import wide
from regard.core.tap import plain, record, resting
from regard.decoding.logits_processing import largest
from regard.errors import UsageError
from regard.explain.contexts import contexts, snippet
from regard.explain.layers import AFTER, layers_of
from regard.explain.look import (
    Look,
    Options,
    by_token,
    layer_control,
    numbered,
    numbers,
    place_of,
    position_control,
    register_look,
)
from regard.explain.outcome import NO_WORDS, own_choice
from regard.explain.site import Site, site_at, sites
from regard.explain.view import Bars, Control, Listing, Panel, View
from regard.tasks.reading import Reading
from regard.terminal.label import label

STRONGEST, WRITTEN, RAISED, NAMED = 12, 8, 10, 4
NUDGE = 1e-2  # of the size of what is nudged
CAVEAT = (
    "A unit that is large at a word need not stand for it: most answer to many things, the sentences it was tried on "
    "are few, and what it writes is read by later layers too, which this does not follow. No unit was switched off."
)


@dataclass(frozen=True)
class Net:
    """One net while it reads a text.

    values  (T, F) of its units.
    writes  (n, D) the directions of some units in the stream, to (n, V) changes of the logits.
    answers whether these are logits of a head; else what the vector of each token has in common with it.
    """

    site: Site
    values: Tensor
    writes: Callable[[Tensor], Tensor]
    answers: bool

    @property
    def rows(self) -> Tensor:
        """w_n (F, D)."""
        return wide(self.site.module.hidden_to_output.weight.detach().T)


def neurons(reading: Reading, options: Options) -> View:
    """The units of one layer that write most at a position, and one of them."""
    side = reading.main
    place = own_choice(side) if options.position is None else place_of(side, options.position)
    net = _net(reading, site_at(sites(reading, "neurons"), options.layer), place)
    sizes = net.values[place].abs() * net.rows.norm(dim=-1)
    strongest = largest(sizes, min(STRONGEST, len(sizes))).tolist()
    if options.neuron is not None and options.neuron > len(sizes):
        raise UsageError(f"neuron {options.neuron}: the layer has neurons 1 to {len(sizes)}")
    unit = strongest[0] if options.neuron is None else options.neuron - 1
    position = numbers(side)[place]
    panels = [_strongest(reading, net, place, strongest), *_unit(reading, net, unit, place)]
    about = {"layer": net.site.layer, "neuron": unit + 1, "neurons": len(sizes), "position": position}
    values = sorted({unit + 1, *(one + 1 for one in strongest)})
    controls = [
        layer_control(sites(reading, "neurons"), side.name, net.site.layer),
        Control(name="neuron", label="neuron", kind="choice", value=unit + 1, values=values),
        position_control(side, position),
    ]
    title = f"Neurons of layer {net.site.layer} at {numbered(side.labels[place], position)}"
    return View(title, panels, about, CAVEAT, [one for one in controls if len(one.values) > 1])


@torch.no_grad()
def _net(reading: Reading, site: Site, place: int) -> Net:
    model: Any = plain(reading.model)
    tap = site.tap("neurons")
    with record(model, tap) as seen:
        found = layers_of(reading)
    hidden = seen[tap][-1][0]  # (T, F)
    found.pop(AFTER)
    stream = list(found.values())[-1][0, place]
    block = model.get_submodule(site.name.rpartition(".")[0])
    after = getattr(block, "mlp_after", None)  # a norm of its own on what the net writes
    written = site.module.hidden_to_output(hidden[place])

    def writes(rows: Tensor) -> Tensor:
        rows = rows.to(stream.dtype)
        rows = rows if after is None else nudged(after, written, rows)
        return wide(nudged(lambda x: _logits(model, model.norm(x)), stream, rows))

    return Net(site, wide(hidden), writes, model.head.n_answers > 0)


def _logits(model: Any, vectors: Tensor) -> Tensor:
    """Of the head; or, of a model without one, how much each token's own vector is in it."""
    return model.head(vectors) if model.head.n_answers else vectors @ model.embedding.token_to_vector.weight.T


@torch.no_grad()
def nudged(f: Callable[[Tensor], Tensor], at: Tensor, rows: Tensor) -> Tensor:
    """How f (..., V) changes around `at` (D,) for a little of each of `rows` (n, D): (n, V)."""
    size = NUDGE * at.norm() / rows.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return (f(at + size * rows) - f(at - size * rows)) / (2 * size)


def _strongest(reading: Reading, net: Net, place: int, units: list[int]) -> Listing:
    """The units that write most at a position."""
    effect = net.writes(net.rows[units])
    told = "the logits that it moves directly" if net.answers else "their own vectors, as the model has no head"
    rows: list[list[str | float | None]] = []
    for unit, change in zip(units, effect, strict=True):
        value = float(net.values[place, unit])
        towards = change if value >= 0 else -change
        rows.append([unit + 1, value, _tokens(reading, towards), _tokens(reading, -towards)])
    return Listing(
        title=f"The {len(units)} units that write most here",
        columns=["neuron#", "value#", "writes towards", "and away from"],
        rows=rows,
        note=f"Most by the size of what each adds to the stream; the tokens by {told}.",
        key="strongest",
    )


def _tokens(reading: Reading, change: Tensor) -> str:
    return "  ".join(label(reading.named(token)) for token in largest(change, min(NAMED, len(change))).tolist())


def _unit(reading: Reading, net: Net, unit: int, place: int) -> list[Panel]:
    """Where one unit is large in the text and elsewhere, and what it writes."""
    values = net.values[:, unit]
    sign = 1.0 if float(values[place]) >= 0 else -1.0
    change = net.writes(net.rows[unit : unit + 1])[0] * sign
    best = largest(change, min(WRITTEN, len(change))).tolist()
    least = largest(-change, min(WRITTEN // 2, len(change))).tolist()[::-1]
    shown = list(dict.fromkeys([*best, *least]))
    told = "one more of it" if sign > 0 else "one less of it, as its value here is below zero"
    return [
        by_token(reading.main, values.tolist(), title=f"Neuron {unit + 1} over the text", unit="value", key="values"),
        *_raised(reading, net.site, unit, sign),
        Bars(
            title=f"What neuron {unit + 1} writes",
            names=[reading.named(token) for token in shown],
            values=[float(change[token]) for token in shown],
            unit=f"change of a logit for {told}",
            key="writes",
        ),
    ]


@torch.no_grad()
def _raised(reading: Reading, site: Site, unit: int, sign: float) -> list[Listing]:
    """The words of other sentences at which a unit is largest, or lowest where it is below zero in the text.

    Nothing where the model knows none of them.
    """
    known, model = contexts(reading.owner), plain(reading.model)
    found: list[tuple[float, int, int]] = []
    for rows, tokens, context in known.batches() if known.readings else ():
        with resting(model), record(model, site.tap("neurons"), lambda hidden: hidden[..., unit].detach()) as seen:
            model(tokens, None, context)
        values = next(iter(seen.values()))[-1]
        for row, number in enumerate(rows):
            groups = known.readings[number].sides[0].groups
            for group, (word, part) in enumerate(zip(groups.labels, groups.members, strict=True)):
                if word not in NO_WORDS:
                    found.append((sign * float((sign * values[row, list(part)]).max()), number, group))
    if not found:
        return []
    found.sort(key=lambda one: -sign * one[0])
    lines: list[list[str | float | None]] = []
    for value, number, group in found[:RAISED]:
        one = known.readings[number]
        lines.append([one.sides[0].groups.labels[group], value, snippet(one, group)])
    return [
        Listing(
            title=f"What {'raises' if sign > 0 else 'lowers'} neuron {unit + 1}, among {len(known.readings)} sentences",
            columns=["word", "value#", "in"],
            rows=lines,
            key="raised",
        )
    ]


register_look(
    Look(
        "neurons",
        "the units of a feed-forward net: what raises them, and what they write",
        neurons,
        fits=lambda can: {"stream", "neurons"} <= can.shows and can.tokens and (can.next or can.mask),
    )
)
