"""Gap: the counts of both sides that a word in a gap is told by.

    p(w | l, r) = (c(l w r) + m p_0(w)) / (c(l . r) + m)        p_0(w) ~ p(w | left) p(w | right) / p(w)

Letters are those of `regard.models.cloze`.
"""

from __future__ import annotations

import torch

from regard.decoding.logits_processing import largest
from regard.explain.look import Look, Options, position_control, register_look
from regard.explain.ngram import explain_last
from regard.explain.outcome import number_of, outcome
from regard.explain.view import Listing, Note, View
from regard.models.cloze import Cloze
from regard.models.ngram import NgramModel
from regard.tasks.reading import Reading

TOP = 12
COLUMNS = ("word", "between#", "p left#", "order#", "p right#", "order#", "p alone#", "p apart#", "p#")
KEYS = ("between", "left", "left_order", "right", "right_order", "alone", "apart", "p")
CAVEAT = "An order is how many tokens, the word among them, were met in training side by side as they stand here."


def gap(reading: Reading, options: Options) -> View:
    """What stood between the same neighbours, and what each side alone says, of the most probable words."""
    model = reading.owner.model
    assert isinstance(model, Cloze)
    found = outcome(reading, options.position)
    assert found.place is not None
    around = model(reading.inputs[0])[0][0, found.place]
    with torch.no_grad():
        of = model.sides(around[None])
    left, right = (side[side >= 0].tolist() for side in around.chunk(2))
    counts = dict(zip(of.words.tolist(), of.counts.tolist(), strict=True))
    m, total = float(model.chosen[0]), float(of.totals[0])
    rows, about = [], []
    for word in largest(found.log_probs, min(TOP, len(found.log_probs))).tolist():
        name, p = reading.named(word), float(found.log_probs[word].exp())
        alone, apart = float(model.before.table.base[word]), float(of.apart[0, word])
        said = [float(side[0, word]) for side in (of.left, of.right)]
        orders = [
            _matched(reading, part, [*side, word]) for part, side in ((model.before, left), (model.behind, right))
        ]
        count = counts.get(word, 0.0)
        told = (count, said[0], orders[0], said[1], orders[1], alone, apart, p)
        rows.append((name, *(f"{value:.4g}" for value in told)))
        about.append({"word": name} | dict(zip(KEYS, told, strict=True)))
    number = number_of(reading, found.place)
    near = [reading.named(side[-1]) if side else "nothing" for side in (left, right)]
    first = about[0]
    sum_ = f"({first['between']:.0f} + {m:g} x {first['apart']:.4g}) / ({total:.0f} + {m:g})"
    panels = [
        Listing(
            title=f"What is told of the words between {near[0]!r} and {near[1]!r}",
            key="words",
            columns=COLUMNS,
            rows=rows,
            note=f"Between these two {total:.0f} words were counted; the sides apart count as m = {m:g} more.",
        ),
        Note(text="p = (between + m x p apart) / (all between + m)", style="equation"),
        Note(text=f"p({first['word']}) = {sum_} = {first['p']:.4g}", style="answer"),
    ]
    facts = {"position": number, "between": total, "back_off": m, "words": about}
    return View(
        f"What both sides say of position {number}", panels, facts, CAVEAT, [position_control(reading.main, number)]
    )


def _matched(reading: Reading, model: NgramModel, ids: list[int]) -> int:
    """The longest order by which one side knows a word, 0 where it never met it."""
    return explain_last(model, reading.owner.tokenizer, ids).matched


register_look(
    Look("gap", "the counts of both sides that a word in a gap is told by", gap, fits=lambda can: "gaps" in can.shows)
)
