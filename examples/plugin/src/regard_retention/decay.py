"""Decay: how far back each head of a retention sees, whatever the text: a look.

gamma_h^n               what is left of a token after n more
ln 2 / -ln gamma_h      tokens after which half is left
"""

from __future__ import annotations

import math

import numpy as np
import torch

from regard.explain.look import Look, Options, layer_control, numbers, place_of, points, position_control, register_look
from regard.explain.mechanism import Mechanism, register_mechanism
from regard.explain.site import site_at, sites
from regard.explain.view import Curves, Heat, Listing, View
from regard.tasks.reading import Reading
from regard_retention.retention import Retention

SHOWN = "decay"
FORGOTTEN = 0.01
AGO = range(129)  # tokens of the curves


def decay(reading: Reading, options: Options) -> View:
    """The decays of a layer as half-lives, as curves, and over the tokens of the text."""
    found = sites(reading, SHOWN)
    site = site_at(found, options.layer, options.side)
    side, place = site.rows, place_of(site.rows, options.position)
    logs = log_decays(site.module)
    heads = [f"head {number}" for number in range(1, len(logs) + 1)]
    left = np.exp(np.outer(logs, np.arange(place, -1, -1)))
    at = numbers(side)[place]
    rows = [
        (name, math.exp(log), half_life(log), math.log(FORGOTTEN) / log) for name, log in zip(heads, logs, strict=True)
    ]
    panels = [
        Listing(
            title="How long each head remembers",
            columns=("head", "gamma#", "half is left after#", f"{FORGOTTEN:.0%} is left after#"),
            rows=rows,
            note="In tokens.",
            key="half_lives",
        ),
        Heat(
            title=f"What is left of each token at position {at}",
            weights=left,
            rows=heads,
            columns=side.labels[: place + 1],
            row_name="head",
            column_name=side.name,
            scale="gamma^(t-s)",
            key="left",
        ),
        Curves(
            title="What is left of a token",
            lines={name: points(AGO, np.exp(log * np.array(AGO))) for name, log in zip(heads, logs, strict=True)},
            x="tokens ago",
            y="share",
            key="curves",
        ),
    ]
    return View(
        f"The decays of layer {site.layer} of retention",
        panels,
        {"layer": site.layer, "position": at},
        "How much a token counts depends on its key and on the query, too: this is the most that is left of it.",
        [layer_control(found, side.name, site.layer), position_control(side, at)],
    )


def log_decays(retention: Retention) -> list[float]:
    """log gamma of each head."""
    return retention.log_decay(torch.zeros((), dtype=torch.float64)).tolist()


def half_life(log_decay: float) -> float:
    """Tokens after which half is left."""
    return math.log(2) / -log_decay


# What explain knows of retention beyond its taps: what it is called, and that it has decays to show.
register_mechanism(
    Retention,
    Mechanism("retention", "a retention", order=lambda _: "fades with distance", shows=frozenset({SHOWN})),
)
register_look(Look(SHOWN, "how far back each head of a retention sees", decay, fits=lambda can: SHOWN in can.shows))
