"""Counts: which orders of an n-gram model matched at each token, and the calculation of one probability."""

from __future__ import annotations

from regard.explain.look import Look, Options, register_look
from regard.explain.ngram import NgramExplanation, explain_ngram
from regard.explain.view import Bars, Control, Listing, Note, View
from regard.tasks.reading import Capabilities, Reading


def backoff(reading: Reading, _options: Options) -> View:
    """Token by token: the longest order that matched, the path to it, and the probability."""
    found = _explained(reading)
    panels = [
        Listing(
            title="Which orders matched", key="tokens", columns=found.columns, rows=found.rows(), note=found.totals()
        ),
        Bars(
            title="The longest match at each token",
            key="matched",
            names=[token.text for token in found.tokens],
            values=[float(token.matched) for token in found.tokens],
            unit="order",
        ),
    ]
    return View(f"How {found.order}-grams tell the text", panels, found.to_dict())


def steps(reading: Reading, options: Options) -> View:
    """The calculation of one probability, from the shortest order that takes part to the longest."""
    found = _explained(reading)
    last = len(found.tokens)
    position = last if options.position is None else options.position
    lines = found.steps(position)
    notes = [Note(text=line, style="equation") for line in lines[:-1]]
    result = Note(text=lines[-1], style="answer")
    control = Control(name="position", label="Token", kind="choice", value=position, values=list(range(1, last + 1)))
    title = f"The probability of {found.token(position).text!r}, order by order"
    told = found.token_dict(position)
    return View(title, [*notes, result], {"token": told.pop("text")} | told, "", [control])


def _explained(reading: Reading) -> NgramExplanation:
    return explain_ngram(reading.owner.model, reading.owner.tokenizer, reading.given)


def _has_orders(can: Capabilities) -> bool:
    # As a part of a model that reads a source too, or both sides of a word, it does not tell the answer alone.
    return "orders" in can.shows and can.next and not can.source


register_look(Look("backoff", "which orders matched at each token", backoff, fits=_has_orders))
register_look(Look("steps", "the calculation of one probability, order by order", steps, fits=_has_orders))
