"""Steps: every number of the mechanism at one position of the user's own text, then the answer it leads to."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from regard.core.device import wide
from regard.errors import UsageError
from regard.explain.look import Look, Options, layer_control, numbers, place_of, position_control, register_look
from regard.explain.mechanisms.calculation import calculation
from regard.explain.site import Site, directions, sites
from regard.explain.view import Control, Note, Numbers, Panel, View
from regard.tasks.reading import Reading, Side
from regard.terminal.label import label

BEST = 6


def steps(reading: Reading, options: Options) -> View:
    """The numbers of one layer at one position, in the order in which they are computed."""
    chosen = _sites(reading, options)
    site = chosen[0]
    place = place_of(site.rows, options.position)
    heads = getattr(getattr(site.module, "config", None), "n_heads", 0)
    if heads and options.head is not None and not 1 <= options.head <= heads:
        raise UsageError(f"head {options.head}: the layer has heads 1 to {heads}")
    mechanism = site.mechanism
    assert mechanism is not None
    assert mechanism.steps is not None
    panels: list[Panel] = [_tokens(site.rows, place)]
    for one in chosen:
        if len(chosen) > 1:
            panels.append(Note(text="Read from the last to the first." if one.backward else "Read from the first on."))
        panels += _keyed(mechanism.steps(calculation(reading, one, place, options)), one.backward)
    panels += _answer(reading, site, place)
    position = numbers(site.rows)[place]
    about = {"layer": site.layer, "kind": site.kind, "side": site.rows.name, "position": position}
    there = [one for one in sites(reading, "steps") if one.kind == site.kind and _mixes(one)]
    asked = [
        layer_control(there, site.rows.name, site.layer),
        Control(name="head", label="head", kind="choice", value=options.head or 1, values=list(range(1, heads + 1))),
        position_control(site.rows, position),
        Control(name="reduce", label="numbers of a vector", kind="choice", value=options.reduce, values=[4, 8, 0]),
    ]
    controls = [control for control in asked if len(control.values) > 1]
    name = mechanism.title[:1].upper() + mechanism.title[1:]
    return View(f"{name}, layer {site.layer}, in numbers", panels, about, "", controls)


def _sites(reading: Reading, options: Options) -> list[Site]:
    """The layer that is asked for, of the kind that makes the model what it is; both directions where it has two."""
    worked = sites(reading, "steps")
    found = [site for site in worked if _mixes(site)] or worked
    own = min(found, key=lambda site: site.mechanism.rank if site.mechanism else 0).kind
    if options.side is not None:
        own = next((site.kind for site in found if site.rows.name == options.side), own)
    return directions([site for site in found if site.kind == own], options.layer, options.side)


def _keyed(panels: list[Panel], backward: bool) -> list[Panel]:
    """Panels of the direction that reads backwards have keys of their own."""
    if not backward:
        return panels
    return [dataclasses.replace(one, key=f"{one.key}.backward") if one.key else one for one in panels]


def _mixes(site: Site) -> bool:
    """Whether it looks at more than its own place."""
    return site.module.reach != 1 or site.module.needs_memory


def _tokens(side: Side, place: int) -> Note:
    tokens = [label(token) for token in side.labels]
    marked = [f"[{token}]" if number == place else token for number, token in enumerate(tokens)]
    return Note(title=f"The {side.name}", text=" ".join(marked))


@torch.no_grad()
def _answer(reading: Reading, site: Site, place: int) -> list[Panel]:
    """What the whole model says at that position, or of the whole."""
    outputs = wide(reading.run()[0])
    if reading.can.quantiles or (outputs.dim() == 2 and site.rows is not reading.main):
        return []
    logits = outputs if outputs.dim() == 1 else outputs[place]
    chances = logits.softmax(-1)
    best = chances.topk(min(BEST, len(chances)))
    values = np.stack([logits[best.indices].cpu().numpy(), best.values.cpu().numpy()], 1)
    return [
        Numbers(
            title="The answer",
            key="answer",
            equation="p = softmax(W_out h)",
            tex=r"p = \softmax(W_{\text{out}} \, h)",
            values=values,
            rows=[reading.named(int(number)) for number in best.indices],
            columns=["logit", "p"],
            note="after all layers",
        )
    ]


register_look(
    Look("steps", "every number of the mechanism at one position", steps, fits=lambda can: "steps" in can.shows)
)
