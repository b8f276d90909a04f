"""Pooling: how much each word counts in the one vector that stands for a text."""

from __future__ import annotations

from regard.core.device import wide
from regard.explain.look import Look, Options, register_look
from regard.explain.site import sites
from regard.explain.view import Bars, View
from regard.explain.weights import as_array
from regard.tasks.reading import Reading

CAVEAT = (
    "A word counts by the vector that stands at its place, and that vector has read the words around it: what is "
    "pooled there need not be about the word itself."
)


def pooling(reading: Reading, _options: Options) -> View:
    """The weight of each position, and the answer that comes of it."""
    (site,) = sites(reading, "pooling")
    tap = site.tap("pooling")
    weights = as_array(reading.trace(tap)[tap])
    chances = wide(reading.run()[0]).softmax(-1)
    order = chances.argsort(descending=True).tolist()
    form = site.module.form
    panels = [
        Bars(
            title=f"What each token counts ({form})",
            key="weights",
            names=site.rows.labels,
            values=weights.tolist(),
            unit="weight",
            note="of the largest coordinates all positions count alike" if form == "max" else "",
        ),
        Bars(
            title="The answer",
            key="answer",
            names=[reading.named(number) for number in order],
            values=[float(chances[number]) for number in order],
            unit="probability",
        ),
    ]
    return View("From a text to one vector", panels, {"form": form}, CAVEAT)


register_look(
    Look(
        "pooling",
        "how much each word counts in the vector of a text",
        pooling,
        fits=lambda can: "pooling" in can.shows and can.whole,
    )
)
