"""Induction heads, heads that look at the token before, and sinks: found on random tokens that come twice.

A head that looks at what came after the last time it read the same token can copy what follows it: with a head below
it that looks one token back, that is how a model continues a text in the way it began (Olsson et al. 2022).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from regard.core.device import wide
from regard.core.tap import plain, record, resting
from regard.errors import UsageError
from regard.explain.habits import ENOUGH, HABITS, Repeated, habits, named, reads_repeated, repeated
from regard.explain.look import Look, Options, register_look, seed_control
from regard.explain.site import Site, on_side
from regard.explain.view import Heat, Listing, Note, Panel, View
from regard.tasks.reading import Capabilities, Reading

SHOWN, DIGITS = 24, 4
CAVEAT = (
    "A name tells what a head does on tokens without sense; on a text it may do something else besides. That a head "
    "looks where copying needs it to look does not prove that what it reads there decides the answer: none was removed."
)


def induction(reading: Reading, options: Options) -> View:
    """Every head by its habits, and a picture of the best induction head."""
    given = repeated(reading, options.seed)
    if given is None:
        raise UsageError("the model has too few tokens or positions for a text that comes twice")
    there = on_side(reading, None)
    found = habits(reading, there, given)
    panels = [*_gain(reading, given), _listing(there, found)]
    panels += [_map(there, found, habit) for habit in HABITS[:2]]
    panels.append(_picture(reading, there, found, given))
    about = {"tokens": given.half, "named": sum(bool(named(head)) for shares in found for head in shares)}
    title = f"Heads on {given.half} random tokens that come twice"
    return View(title, panels, about, CAVEAT, [seed_control(options.seed)])


@torch.no_grad()
def _gain(reading: Reading, given: Repeated) -> list[Panel]:
    """How much better the tokens are told the second time, of a model that says what comes next."""
    if not (reading.can.next and reading.can.answers):
        return []
    model: Any = plain(reading.model)
    with resting(model):
        log_probs = wide(model.head(model(given.tokens)[0])[0]).log_softmax(-1)
    tokens = given.tokens[0]
    said = log_probs[:-1].gather(1, tokens[1:, None])[:, 0]  # of the token after each position
    # The first token of the second half cannot be foreseen: nobody knows when the first half ends.
    first, second = (
        said[given.before : given.before + given.half - 1],
        said[given.before + given.half :][: given.half - 1],
    )
    text = (
        f"The mean log p of the tokens is {float(first.mean()):.3g} the first time and {float(second.mean()):.3g} the "
        f"second time: {float(second.mean() - first.mean()):.3g} more, which is what repetition tells the model."
    )
    return [Note(title="Does it copy?", text=text, style="answer", key="gain")]


def _listing(there: list[Site], found: list[np.ndarray]) -> Listing:
    """The heads that have a name, those with most of their weight on it first; the nearest to one where none has."""
    rows: list[list[Any]] = []
    for site, shares in zip(there, found, strict=True):
        rows += [
            [site.layer, head + 1, named(one), *(round(float(value), DIGITS) for value in one)]
            for head, one in enumerate(shares)
        ]
    rows.sort(key=lambda one: (not one[2], HABITS.index(one[2]) if one[2] else 0, -max(one[3:])))
    count = sum(bool(one[2]) for one in rows)
    # What comes later is seen by models alone that look both ways.
    kept = [
        place
        for place, habit in enumerate(HABITS)
        if any(one[3 + place] for one in rows) or not habit.startswith("next")
    ]
    rows = [[*one[:3], *(one[3 + place] for place in kept)] for one in rows]
    shown = rows[: max(SHOWN, sum(one[2] == HABITS[0] for one in rows))]
    return Listing(
        title=f"{count} of {len(rows)} heads have a name",
        columns=["layer#", "head#", "name", *(f"{HABITS[place]}#" for place in kept)],
        rows=shown,
        note=f"Shares of a head's weight; it is called by the largest one, where that is {ENOUGH:g} or more."
        + (f" {len(shown)} of {len(rows)} heads are shown." if len(shown) < len(rows) else ""),
        key="heads",
    )


def _map(there: list[Site], found: list[np.ndarray], habit: str) -> Heat:
    """One habit of all heads, (layers, heads)."""
    widest = max(len(shares) for shares in found)
    values = np.full((len(found), widest), np.nan)
    for row, shares in enumerate(found):
        values[row, : len(shares)] = shares[:, HABITS.index(habit)]
    return Heat(
        title=f"{habit.capitalize()}: its share of the weight of every head",
        weights=values,
        rows=[f"layer {site.layer}{', backward' if site.backward else ''}" for site in there],
        columns=[str(head + 1) for head in range(widest)],
        row_name="layer",
        column_name="head",
        key=habit.split()[0],
    )


@torch.no_grad()
def _picture(reading: Reading, there: list[Site], found: list[np.ndarray], given: Repeated) -> Heat:
    """The map of the head with the largest share of induction."""
    number = int(np.argmax([shares[:, 0].max() for shares in found]))
    site, head = there[number], int(found[number][:, 0].argmax())
    model: Any = plain(reading.model)
    with resting(model), record(model, site.tap("attention"), lambda value: value[0, head].detach()) as seen:
        model(given.tokens)
    weights = next(iter(seen.values()))[-1]
    tokens = [reading.named(int(token)) for token in given.tokens[0]]
    return Heat(
        title=f"Layer {site.layer}, head {head + 1}, which does so most",
        weights=(weights.flip(0, 1) if site.backward else weights).float().cpu().numpy(),
        rows=tokens,
        columns=tokens,
        row_name="looks",
        column_name="at",
        note=f"Induction is the diagonal {given.half - 1} tokens back, in the lower half.",
        key="weights",
    )


def _fits(can: Capabilities) -> bool:
    return "attention" in can.shows and reads_repeated(can)


register_look(
    Look("induction", "which heads copy what came after the same token, or look one back", induction, fits=_fits)
)
