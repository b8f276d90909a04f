"""Alignment: where a decoder looks in its source while it writes each token."""

from __future__ import annotations

import math

import numpy as np

from regard.errors import UsageError
from regard.explain.look import Look, Options, register_look
from regard.explain.overlay import Overlay, picture_of
from regard.explain.view import Heat, Links, Listing, Panel, View
from regard.explain.weights import Weights, controls, weights_of
from regard.tasks.reading import Reading

CAVEAT = (
    "Attention was trained to help writing, not to align: a word may be looked at a step early, for the word after it, "
    "or hardly at all where the text so far says enough."
)
OF_COUNTS = (
    "A lexicon knows which words stood in the same pairs, and neither their order nor their neighbours: words that "
    "always come together share their weight, and one never met belongs to all of the source alike."
)


def alignment(reading: Reading, options: Options) -> View:
    """Links between words, the map behind them, and pairs as Pharaoh writes them."""
    source = reading.sides[0]
    if source.name == "picture" and options.hide_sink:
        raise UsageError("the places of a picture have no first one to hide: leave out --hide-sink")
    words = options.changed(merge=options.merge or bool(source.words))
    found = weights_of(reading, "alignment", words)
    of_all = "mean of heads" if options.head is None else f"head {options.head}"
    about = {"layer": found.site.layer, "head": options.head, "written": " ".join(reading.main.groups.labels[1:])}
    counted = reading.can.fitted
    title = "How likely each word came from each" if counted else f"Layer {found.site.layer}, {of_all}"
    made = [_map(found, title, source.name)]
    if source.name == "picture":
        panels: list[Panel] = [*_over_picture(reading, found), *made]
    elif source.words:
        pairs = aligned(weights_of(reading, "alignment", words.changed(hide_sink=False)).matrix)
        about["pharaoh"] = " ".join(f"{j}-{i}" for i, j in sorted(pairs, key=lambda pair: (pair[1], pair[0])))
        # Without its first column the map has the others one place earlier.
        pairs = [(i, j - 1) for i, j in pairs if j] if options.hide_sink else pairs
        panels = [_links(found, pairs), *made, _table(found, pairs)]
    else:
        panels = [*made]
    verb = "comes from" if counted else "looks"
    title = f"Where the {reading.main.name} {verb} in the {source.name}"
    return View(title, panels, about, OF_COUNTS if counted else CAVEAT, controls(reading, "alignment", found, words))


def aligned(matrix: np.ndarray) -> list[tuple[int, int]]:
    """(i, j) for every written word but the end: the source word, the end excepted, that it looks at most."""
    inner = matrix[:-1, :-1] if matrix.shape[1] > 1 else matrix[:-1]
    return [(i, int(row.argmax())) for i, row in enumerate(inner)]


def _links(found: Weights, pairs: list[tuple[int, int]]) -> Links:
    return Links(
        title="Links",
        key="links",
        weights=found.matrix,
        upper=found.columns,
        lower=found.rows,
        upper_name="source",
        lower_name="written",
        pairs=pairs,
        note=found.told,
    )


def _map(found: Weights, title: str, source: str) -> Heat:
    return Heat(
        title=title,
        key="weights",
        weights=found.matrix,
        rows=found.rows,
        columns=found.columns,
        row_name="written",
        column_name=source,
    )


def _table(found: Weights, pairs: list[tuple[int, int]]) -> Listing:
    rows = [[found.rows[i], found.columns[j], float(found.matrix[i, j])] for i, j in pairs]
    return Listing(
        title="Each written word and where it looks most", columns=("written", "source", "weight#"), rows=rows
    )


def _over_picture(reading: Reading, found: Weights) -> list[Panel]:
    """The weights of each written word over the picture that was read, where they are those of a square of it."""
    across = math.isqrt(found.matrix.shape[1])
    if across**2 != found.matrix.shape[1]:
        return []
    return [
        Overlay(
            title="Where it looks in the picture, word by word",
            key="picture",
            picture=picture_of(reading),
            weights=found.matrix.reshape(-1, across, across),
            words=found.rows,
            note=f"The model reads the picture in {across} x {across} squares and weighs each. Between their centres "
            "the shade is drawn softly, which is no finer knowledge.",
        )
    ]


register_look(
    Look(
        "alignment",
        "where the decoder looks while it writes each word",
        alignment,
        fits=lambda can: "alignment" in can.shows,
    )
)
