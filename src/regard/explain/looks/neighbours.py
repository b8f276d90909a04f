"""Neighbours: which examples of training were looked up, and how much each counts in what is written."""

from __future__ import annotations

from regard.explain.look import Look, Options, register_look
from regard.explain.overlay import Overlay, picture_of
from regard.explain.view import Bars, Listing, Panel, View
from regard.fitting.lookup import ComparesSquares, Found, LooksUp
from regard.tasks.reading import Reading

MOST = 12  # that are shown
CAVEAT = (
    "What is similar is so by the measure of the model alone: pixels for pictures, shared tokens for texts. A picture "
    "moved by a few pixels, or a source in other words, is far away."
)


def neighbours(reading: Reading, _options: Options) -> View:
    """The examples that were found, the most similar first."""
    model = reading.owner.model
    assert isinstance(model, LooksUp)
    found = model.looked_up(reading.inputs[0])
    shown = found[:MOST]
    told = [_told(reading, one) for one in shown]
    rest = sum(one.weight for one in found[MOST:])
    note = f"The {len(found) - len(shown)} others have {rest:.3g} together." if len(found) > len(shown) else ""
    names = [f"{one.row + 1}: {text}" for one, (_, text) in zip(shown, told, strict=True)]
    has_sources = any(one.source for one in shown)
    rows = [
        [one.row + 1, one.weight, *([source] if has_sources else []), text]
        for one, (source, text) in zip(shown, told, strict=True)
    ]
    columns = ["training example#", "weight#", *(["source"] if has_sources else []), "written"]
    panels: list[Panel] = [
        Bars(
            title="How much each counts",
            key="weights",
            names=names,
            values=[one.weight for one in shown],
            unit="weight",
            note=note,
        ),
        Listing(title="What was looked up", key="found", columns=columns, rows=rows),
    ]
    panels += _apart(reading, shown, [text for _, text in told])
    about = {"written": " ".join(reading.main.groups.labels[1:]), "rows": [one.row + 1 for one in shown]}
    return View("Which examples of training were looked up", panels, about, CAVEAT)


def _apart(reading: Reading, shown: list[Found], texts: list[str]) -> list[Panel]:
    """Where the picture that was read differs from each that was found, of a model that compares their squares."""
    model = reading.owner.model
    if not isinstance(model, ComparesSquares) or not shown:
        return []
    apart = model.differences(reading.inputs[0], [one.row for one in shown]).cpu().numpy()
    return [
        Overlay(
            title="Where the picture differs from each that was looked up",
            key="picture",
            picture=picture_of(reading),
            weights=apart,
            words=[f"{one.row + 1}: {text}" for one, text in zip(shown, texts, strict=True)],
            scale="difference",
            note="Squared differences of the mean colours of squares; the less there is of them, the more an example "
            "counts. Bright is where most of the difference is, and not what the caption is about.",
        )
    ]


def _told(reading: Reading, one: Found) -> tuple[str, str]:
    """Its source, where that is a text, and what was written for it."""
    source = reading.about["read"](one.source) if one.source else ""
    return source, reading.about["written"](one.target)


register_look(
    Look(
        "neighbours",
        "which examples of training were looked up, and how much each counts",
        neighbours,
        fits=lambda can: "neighbours" in can.shows,
    )
)
