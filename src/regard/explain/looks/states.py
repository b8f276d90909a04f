"""States: what a state space lets in, keeps and reads, and how any recurrence's state moves from token to token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from regard.core.tap import Trace
from regard.errors import UsageError
from regard.explain.look import (
    ONE_PASS,
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
from regard.explain.scan import AT_ONCE, channels_of, half_lives, has_channels, kept, moved, scan_matrix, turned
from regard.explain.site import Site, directions, sites
from regard.explain.view import Control, Curves, Heat, Listing, Panel, View
from regard.mixers.s4d import S4d
from regard.tasks.reading import Reading

LEAST, MOST = 64, 512


def kernels(reading: Reading, options: Options) -> View:
    """The convolutions of an S4D layer: how much of a token is left after some more."""
    found = sites(reading, "kernel")
    chosen = directions(found, options.layer, options.side)
    panels: list[Panel] = []
    for site in chosen:
        panels += _kernels(site.module, len(site.rows), site.backward)
    title = f"The kernels of layer {chosen[0].layer} of S4D over the {chosen[0].rows.name}"
    caveat = "A kernel is the same for every text: how much a token counts in this one depends on what it is, too."
    return _view(title, panels, found, chosen[0], caveat)


def selection(reading: Reading, options: Options) -> View:
    """How much each token is let into the state, and the matrix that the scan is equal to."""
    found = sites(reading, "selection")
    chosen = directions(found, options.layer, options.side)
    head = _head(chosen[0], options.head)
    seen = reading.trace(f"{chosen[0].name if len(chosen) == 1 else chosen[0].name.rpartition('.')[0]}.*")
    panels: list[Panel] = []
    for site in chosen:
        panels += [*_steps(site, seen), _matrix(site, seen, head)]
    name = chosen[0].mechanism.named if chosen[0].mechanism else chosen[0].kind
    title = f"What layer {chosen[0].layer} of {name} lets in over the {chosen[0].rows.name}"
    caveat = (
        "The matrix is what this layer does with its own inputs, after its convolution and before its gate; "
        "a token that counts here may be lost in the layers above."
    )
    heads = [None, *range(1, channels_of(chosen[0]) + 1)] if not has_channels(chosen[0]) else []
    extra = [Control(name="head", label="head", kind="choice", value=options.head, values=heads)] if heads else []
    return _view(title, panels, found, chosen[0], caveat, extra)


def moving(reading: Reading, options: Options) -> View:
    """The size of every layer's state, and how much each token changes it."""
    found = sites(reading, "state")
    names = [site.rows.name for site in found]
    chosen = directions(found, None, options.side)[0].rows.name
    there = [site for site in found if site.rows.name == chosen]
    seen = reading.trace()
    sizes: dict[str, np.ndarray] = {}
    changes: dict[str, np.ndarray] = {}
    for site in there:
        label = f"{site.kind} {site.layer}{', backward' if site.backward else ''}"
        sizes[label], changes[label] = moved(site, seen)
    side = there[0].rows
    curves = Curves(
        title="Size of the state",
        lines={name: points(numbers(side), size) for name, size in sizes.items()},
        x="position",
        y="length of the vector",
        key="sizes",
    )
    heat = Heat(
        title="How much each token changes the state",
        weights=np.stack(list(changes.values())),
        rows=list(changes),
        columns=side.labels,
        row_name="layer",
        column_name=side.name,
        scale="|s - s'| / (|s| + |s'|)",
        note="The first token that is read is set beside a state of zeros.",
        key="changes",
    )
    caveat = "A state that changes much has not thereby learnt much: size and change say nothing of what is read out."
    controls = [side_control(names, chosen)] if len(set(names)) > 1 else []
    return View(f"The states over the {chosen}", [heat, curves], {"side": chosen}, caveat, controls)


def _view(
    title: str, panels: list[Panel], found: list[Site], site: Site, caveat: str, extra: Sequence[Control] = ()
) -> View:
    side, sides = site.rows.name, [one.rows.name for one in found]
    controls = [layer_control(found, side, site.layer), *extra]
    controls += [side_control(sides, side)] if len(set(sides)) > 1 else []
    return View(title, panels, {"layer": site.layer, "side": side}, caveat, controls)


def _kernels(module: S4d, length: int, backward: bool) -> list[Panel]:
    lives, steps = half_lives(module), module.log_step.detach().exp().tolist()
    order = lives.argsort(descending=True, stable=True).tolist()
    length = min(MOST, max(LEAST, length, round(2 * float(lives.median()))))
    with torch.no_grad():
        values = module.weights(length)
    values = values / values.abs().amax(1, keepdim=True)
    chosen = {"slowest": order[0], "middle": order[len(order) // 2], "fastest": order[-1]}
    key, where = (".backward", ", read backwards") if backward else ("", "")
    curves = Curves(
        title=f"Kernels of the channels that forget slowest, in the middle and fastest{where}",
        lines={
            f"{name}, channel {channel + 1}": points(range(length), values[channel].tolist())
            for name, channel in chosen.items()
        },
        x="tokens ago",
        y="weight, over its largest",
        note="y_t = sum_j K_j u_(t-j): what a channel reads now of what it read j tokens ago. "
        "Each kernel is divided by its largest weight.",
        key=f"kernels{key}",
    )
    rows = [
        [channel + 1, steps[channel], float(lives[channel])]
        for channel in (order[place] for place in spread(len(order), 12))
    ]
    listing = Listing(
        title=f"Half-lives{where}",
        columns=["channel#", "step dt#", "half-life in tokens#"],
        rows=rows,
        note=f"{len(rows)} of {len(order)} channels; of each the mode that decays slowest.",
        key=f"half_lives{key}",
    )
    return [curves, listing]


def _head(site: Site, head: int | None) -> int | None:
    """The index of a head of Mamba-2; none of Mamba, which has channels."""
    if head is None:
        return None
    if has_channels(site):
        raise UsageError("a layer of Mamba has channels and no heads: leave the head out")
    if not 1 <= head <= channels_of(site):
        raise UsageError(f"head {head}: the layer has heads 1 to {channels_of(site)}")
    return head - 1


def _steps(site: Site, seen: Trace) -> list[Panel]:
    """dt and what is kept, by token and by channel or head."""
    step, share = turned(site, seen[f"{site.name}.steps"][0]), turned(site, kept(site, seen))
    key, where = _direction(site)
    unit = "channel" if has_channels(site) else "head"
    order = np.argsort(-step.mean(0), kind="stable")
    shown = order[spread(len(order))]
    high = float(np.quantile(step[:, shown], 0.99))
    return [
        by_token(
            site.rows,
            step.mean(1).tolist(),
            title=f"How much each token is let in{where}",
            unit="step dt",
            note=f"Means over {len(order)} {unit}s. A large step writes the token and forgets what was before it.",
            key=f"steps{key}",
        ),
        by_token(
            site.rows,
            share.mean(1).tolist(),
            title=f"How much of the state each token leaves{where}",
            unit="share kept, exp(dt A)",
            key=f"kept{key}",
        ),
        Heat(
            title=f"Steps of {len(shown)} of {len(order)} {unit}s, by their mean{where}",
            weights=step[:, shown].T,
            rows=[f"{unit} {number + 1}" for number in shown.tolist()],
            columns=site.rows.labels,
            row_name=unit,
            column_name=site.rows.name,
            high=max(high, 1e-9),
            scale="dt",
            key=f"steps_by_{unit}{key}",
        ),
    ]


def _matrix(site: Site, seen: Trace, head: int | None) -> Heat:
    """|M| over all channels or heads, or of one head."""
    key, where = _direction(site)
    count, length = channels_of(site), len(site.rows)
    unit = "channels" if has_channels(site) else "heads"
    per_channel = length**2 * (site.module.d_state if has_channels(site) else 1)
    channels = [head] if head is not None else spread(count, max(2, AT_ONCE // per_channel))
    weights = scan_matrix(site, seen, channels).abs().mean(0)
    if site.backward:
        weights = weights.flip(0, 1)
    told = f"head {head + 1}" if head is not None else f"the mean over {len(channels)} of {count} {unit}"
    return Heat(
        title=f"The matrix that the scan is equal to, {told}{where}",
        weights=weights.cpu().numpy(),
        rows=site.rows.labels,
        columns=site.rows.labels,
        row_name="reads",
        column_name="written by",
        high=float(weights.max()) or 1.0,
        scale="|C_i decay B_j dt_j|",
        note="Row i holds what position i reads of what each position before it has written; rows need not sum to 1.",
        key=f"matrix{key}",
    )


def _direction(site: Site) -> tuple[str, str]:
    return (".backward", ", read backwards") if site.backward else ("", "")


register_look(
    Look(
        "selection",
        "what a selective state space lets in, and the matrix that its scan is equal to",
        selection,
        fits=lambda can: "selection" in can.shows,
        max_tokens=ONE_PASS // 2,  # a channel of Mamba has a matrix for each of its states
    )
)
register_look(
    Look(
        "kernels",
        "how long the channels of a state space remember",
        kernels,
        fits=lambda can: "kernel" in can.shows,
    )
)
register_look(
    Look(
        "states",
        "how the states of a recurrence move from token to token",
        moving,
        fits=lambda can: "state" in can.shows,
    )
)
