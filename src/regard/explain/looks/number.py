"""A number and its words: what is told of a text, and what each word adds to it, by leaving it out.

Of several labels, each with a chance of its own, it is the chance of the likeliest.
"""

from __future__ import annotations

from regard.errors import UsageError
from regard.explain.look import MANY_PASSES, MOST_BARS, Look, Options, register_look
from regard.explain.outcome import answers, without, words_of
from regard.explain.view import Bars, Note, View
from regard.tasks.reading import Reading

CAVEAT = (
    "A text without a word is another text: two words that say the same may each seem to add nothing, and the parts "
    "need not sum to the whole."
)


def number(reading: Reading, _options: Options) -> View:
    """The number that is told, and how much lower or higher it is without each word."""
    side, found = reading.main, reading.run()[0]
    best = int(found.argmax())
    places, name, told = words_of(side), reading.named(best), float(found[best])
    if len(places) < 2:
        raise UsageError("a text of one word has nothing left without it: give a longer one")
    left = answers(reading, 0, without(reading.inputs[0], [[place] for place in places]))[:, best]
    added = (told - left).cpu().double()
    shown = sorted(added.abs().argsort(descending=True, stable=True)[:MOST_BARS].tolist())
    labels = [side.labels[places[row]] for row in shown]
    few = "" if len(shown) == len(places) else f"The {len(shown)} of {len(places)} words that add or take most."
    bars = Bars(
        title=f"What each word adds to {name!r}",
        names=labels,
        values=added[shown].tolist(),
        unit="in the unit of the number",
        note=few,
        key="added",
    )
    return View(
        f"{name}: {told:.4g}", [Note(text=f"{told:.4g}", style="answer", key="told"), bars], {"number": told}, CAVEAT
    )


register_look(
    Look(
        "number",
        "the number that is told, and what each word adds to it",
        number,
        fits=lambda can: can.number and "evidence" not in can.shows,
        max_tokens=MANY_PASSES,
    )
)
