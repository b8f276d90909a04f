"""Logit lens: what each layer would answer if it were the last (nostalgebraist 2020).

    p_l = softmax(head(norm(x_l)))          x_l the stream after layer l, norm and head the model's own

x_0 is what the embedding gives and x_L what the last layer leaves, of which the head makes the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.core.device import wide
from regard.core.tap import plain
from regard.explain.layers import AFTER, layers_of
from regard.explain.look import Look, Options, numbered, numbers, place_of, points, position_control, register_look
from regard.explain.outcome import own_choice
from regard.explain.view import Curves, Heat, Listing, View
from regard.tasks.reading import Reading
from regard.terminal.label import label

# Positions beside the one that is asked for: every one of them costs the whole head once for each layer.
PLACES = 24
ALSO = 3  # answers after the first
BESIDE = 2  # lines of other answers
CAVEAT = (
    "The head was trained to read the last layer alone: what an earlier one cannot say through it may be known there "
    "all the same, and an answer that stands early in the list need not be the way by which the last one was found."
)


@dataclass(frozen=True)
class Lens:
    """What each layer would answer, from the embedding to the last; L + 1 rows.

    names   of the rows.
    places  the positions that were asked, by their indices.
    answer  the most probable answer of the last layer at each place.
    chance  its probability by layer (L + 1, n); rank: and its rank, 1 for the first.
    own     (L + 1, V) probabilities of all answers at the place that is asked for.
    """

    names: list[str]
    places: list[int]
    answer: list[int]
    chance: np.ndarray
    rank: np.ndarray
    own: np.ndarray


def lens(reading: Reading, options: Options) -> View:
    """One position layer by layer, and those around it."""
    side = reading.main
    place = own_choice(side) if options.position is None else place_of(side, options.position)
    seen = through(reading, place, around(place, len(side), getattr(plain(reading.model), "causal", True)))
    at = seen.places.index(place)
    final = reading.named(seen.answer[at])
    position = numbers(side)[place]
    about = {"position": position, "answer": final, "layers": len(seen.names) - 1}
    panels = [_layers(reading, seen, at), _curves(reading, seen, at), _map(reading, seen)]
    title = f"What each layer would answer at {numbered(side.labels[place], position)}"
    return View(title, panels, about, CAVEAT, [position_control(side, position)])


def around(place: int, length: int, causal: bool) -> list[int]:
    """At most so many positions up to one, or on both of its sides where a model looks both ways.

    >>> around(2, 5, True), around(0, 2, False)
    ([0, 1, 2], [0, 1])
    """
    last = place if causal else min(length - 1, max(place + PLACES // 2, PLACES - 1))
    return list(range(max(0, last + 1 - PLACES), last + 1))


@torch.no_grad()
def through(reading: Reading, place: int, places: list[int]) -> Lens:
    """The stream at some places after each layer, through the norm and the head of the model; at one place in full."""
    model: Any = plain(reading.model)
    found = layers_of(reading)
    answer = wide(model.head(found.pop(AFTER)[:, places])[0]).argmax(-1)  # (n,)
    at, rows = places.index(place), []
    for vectors in found.values():
        probs = wide(model.head(model.norm(vectors[:, places]))[0]).softmax(-1)  # (n, V)
        chance = probs.gather(1, answer[:, None])
        rank = (probs > chance).sum(-1) + 1
        rows.append([part.cpu().numpy() for part in (chance[:, 0], rank, probs[at])])
    chances, ranks, own = (np.stack(part) for part in zip(*rows, strict=True))
    return Lens(list(found), places, answer.tolist(), chances, ranks, own)


def _layers(reading: Reading, seen: Lens, at: int) -> Listing:
    """A row for each layer at one position."""
    final = reading.named(seen.answer[at])
    rows: list[list[str | float | None]] = []
    for row, name in enumerate(seen.names):
        best = np.argsort(-seen.own[row], kind="stable")[: 1 + ALSO].tolist()
        first, *others = [reading.named(token) for token in best]
        told = "  ".join(map(label, others))
        rows.append(
            [name, first, float(seen.own[row, best[0]]), told, float(seen.chance[row, at]), int(seen.rank[row, at])]
        )
    settled = next(row for row in range(len(rows)) if (seen.rank[row:, at] == 1).all())
    is_last = settled == len(rows) - 1
    since = "No layer before the last puts it first" if is_last else f"All from {seen.names[settled]!r} on put it first"
    return Listing(
        title="What each layer would answer",
        columns=["layer", "answer", "p#", "then", f"p of {final!r}#", "rank#"],
        rows=rows,
        note=f"{final!r} is the answer of the model. {since}.",
        key="layers",
    )


def _curves(reading: Reading, seen: Lens, at: int) -> Curves:
    """How probable the answer is, layer by layer, what came, and what else the later layers were sure of."""
    answer = seen.answer[at]
    target = reading.targets[seen.places[at]] if reading.targets else None
    later = seen.own[len(seen.own) // 2 :]
    sure = sorted({int(row.argmax()) for row in later} - {answer, target}, key=lambda token: -later[:, token].max())
    told = {answer: ", the answer"} | ({target: ", which came"} if target not in (None, answer) else {})
    told |= dict.fromkeys(sure[:BESIDE], "")
    layers = range(len(seen.names))
    return Curves(
        title="How probable it is by layer",
        lines={f"{reading.named(token)!r}{what}": points(layers, seen.own[:, token]) for token, what in told.items()},
        x="layer",
        y="probability",
        note="0 is before the first layer. Beside the answer stand those that a later layer was surest of.",
        key="probability",
    )


def _map(reading: Reading, seen: Lens) -> Heat:
    """The same of the positions around it."""
    side = reading.main
    places = numbers(side)
    return Heat(
        title="How probable the answer of the last layer is, layer by layer and at each position",
        weights=seen.chance,
        rows=seen.names,
        columns=[side.labels[place] for place in seen.places],
        row_name="layer",
        column_name="position",
        scale="probability",
        note=f"Positions {places[seen.places[0]]} to {places[seen.places[-1]]} of {places[-1]}.",
        key="answers",
    )


register_look(
    Look(
        "lens",
        "what each layer would answer, through the model's own norm and head",
        lens,
        fits=lambda can: "stream" in can.shows and can.answers and (can.next or can.mask),
    )
)
