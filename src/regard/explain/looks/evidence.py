"""Evidence: which n-grams of a text decided for its class, and which speak most for and against every class.

    z_c = b_c + sum_f x_f w_fc

What is shown of an n-gram is what it adds to a class beyond what it adds to all classes on average; these parts and
that of b sum to the class's score above the mean one, exactly.
"""

from __future__ import annotations

import numpy as np

from regard.explain.look import Look, Options, register_look
from regard.explain.view import Bars, Listing, Note, Panel, View
from regard.fitting.evidence import Evidence, HasEvidence, Weighs
from regard.tasks.reading import Reading

MOST = 24  # n-grams of a text that are shown
HEAVIEST = 12  # n-grams of a class, on each side
MOST_CLASSES = 20
ABOVE_MEAN, DEVIATIONS = "score above the mean of the classes", "deviations of the numbers of training"
CAVEAT = (
    "N-grams overlap: a word speaks through itself, its pairs and its letters, and what each is given of that is the "
    "model's own choice."
)


def evidence(reading: Reading, _options: Options) -> View:
    """What each n-gram of a text adds to the answer, and to every class."""
    model = reading.owner.model
    assert isinstance(model, HasEvidence)
    found = model.evidence(reading.given)
    scores = found.base + found.parts.sum(0)
    answer = int(scores.argmax())
    parts = found.parts[:, answer]
    order = np.argsort(-np.abs(parts), kind="stable")[:MOST]
    rest = float(parts.sum() - parts[order].sum())
    told = reading.named(answer)
    names = [found.names[place] for place in order]
    panels: list[Panel] = [
        Bars(
            title=f"What each n-gram adds to {told!r}",
            key="parts",
            names=names,
            values=parts[order].tolist(),
            unit=ABOVE_MEAN if len(scores) > 1 else DEVIATIONS,
            note=_rest(found, len(order), rest),
        ),
        _by_class(reading, found, order, scores),
        Note(text=f"{_sum(found, parts, answer)} = {scores[answer]:+.3f} for {told!r}", style="answer"),
        *([Note(text=found.note)] if found.note else []),
    ]
    about = {"answer": told, "parts": {name: float(parts[place]) for name, place in zip(names, order, strict=True)}}
    return View(f"Which n-grams decided for {told!r}", panels, about, CAVEAT)


def classes(reading: Reading, _options: Options) -> View:
    """The n-grams that speak most for and against every class, whatever the text."""
    model, panels = _model(reading), list[Panel]()
    n_classes = reading.run().shape[-1]
    shown = range(min(n_classes, MOST_CLASSES))
    for number, (for_it, against) in zip(shown, model.heaviest(shown, HEAVIEST), strict=True):
        rows = [
            (name, f"{weight:+.3f}", other, f"{less:+.3f}")
            for (name, weight), (other, less) in zip(for_it, against, strict=True)
        ]
        columns = ("for", "weight", "against", "weight")
        title = f"For and against {reading.named(number)!r}"
        panels.append(Listing(title=title, key=f"class-{number}", columns=columns, rows=rows))
    left = "" if n_classes <= MOST_CLASSES else f"the first {MOST_CLASSES} of {n_classes:,} classes"
    return View("The n-grams with the largest weights", panels, {"classes": n_classes}, left)


def _by_class(reading: Reading, found: Evidence, order: np.ndarray, scores: np.ndarray) -> Listing:
    shown = np.argsort(-scores, kind="stable")[:MOST_CLASSES]
    rows = [
        (found.names[place], f"{found.values[place]:.3g}", *(f"{found.parts[place, c]:+.3f}" for c in shown))
        for place in order
    ]
    rows.append(("without any", "", *(f"{found.base[c]:+.3f}" for c in shown)))
    rows.append(("all together", "", *(f"{scores[c]:+.3f}" for c in shown)))
    columns = ("n-gram", "counts", *(reading.named(int(c)) for c in shown))
    title = "What each adds to every class" if len(scores) > 1 else "What each adds"
    return Listing(title=title, key="classes", columns=columns, rows=rows)


def _rest(found: Evidence, shown: int, rest: float) -> str:
    others = len(found.names) - shown
    if not found.names:
        return "No n-gram of the text was met in training: what is known of the classes alone decides."
    return f"The {others:,} others add {rest:+.3f} together." if others else ""


def _sum(found: Evidence, parts: np.ndarray, answer: int) -> str:
    return f"{found.base[answer]:+.3f} without any, {parts.sum():+.3f} by {len(found.names):,} n-grams"


def _model(reading: Reading) -> Weighs:
    model = reading.owner.model
    assert isinstance(model, Weighs)
    return model


register_look(Look("evidence", "which n-grams of a text decided", evidence, fits=lambda can: "evidence" in can.shows))
register_look(
    Look("weights", "the n-grams that speak most for each class", classes, fits=lambda can: "gram weights" in can.shows)
)
