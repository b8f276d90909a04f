"""Meaning in context: the vectors of one word in two texts, layer by layer, and the words of other sentences near it.

    I arrived at the bank after crossing the river      ...  the street

Before the first layer the word is the same in both; what the layers add is what its context says.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.device import wide
from regard.errors import UsageError
from regard.explain.contexts import Contexts, contexts, group_means, snippet, words_in
from regard.explain.inputs import read
from regard.explain.layers import AFTER, layers_of
from regard.explain.look import Look, Options, numbered, numbers, points, register_look
from regard.explain.outcome import NO_WORDS
from regard.explain.site import directions, sites
from regard.explain.view import Control, Curves, Listing, Note, Panel, View
from regard.tasks.reading import Reading, Side
from regard.tasks.word import Groups

NEIGHBOURS, ELSEWHERE = 6, 10
CAVEAT = (
    "Vectors that lie apart differ in something, which need not be the meaning of the word: places and neighbours move "
    "them too. Vectors of any two words are often similar, so that only differences between cosines tell anything."
)


@dataclass(frozen=True)
class Placed:
    """A word in a text: the groups of its tokens, which of them it is, and vectors (G, D) of all groups by layer."""

    reading: Reading
    side: Side
    groups: Groups
    group: int
    vectors: dict[str, Tensor]

    def others(self) -> list[int]:
        """The groups of the other words."""
        return [one for one, label in enumerate(self.groups.labels) if one != self.group and label not in NO_WORDS]

    @property
    def told(self) -> str:
        """Its position, or its positions where it has several tokens."""
        places = [numbers(self.side)[place] for place in self.groups.members[self.group]]
        return f"position {places[0]}" if len(places) == 1 else f"positions {min(places)} to {max(places)}"


def meaning(reading: Reading, options: Options) -> View:
    """How the vector of a word differs between two texts, what lies near it, and what it looks at."""
    if not options.word:
        asked = Note(text="Give a word of the text, and another text with it to compare.", style="answer")
        return View("One word in its context", [asked], {}, CAVEAT, _controls(reading, options))
    texts = [reading, *([read(reading.owner, options.other)] if options.other else [])]
    places = [find(one.sides[0], options.word) for one in texts]
    found = [_placed(one, place) for one, place in zip(texts, places, strict=True) if place is not None]
    if len(found) < len(texts):
        where = "the text" if len(texts) == 1 else f"the {'second' if places[1] is None else 'first'} text"
        where = "neither text" if len(texts) == 2 and not found else where
        raise UsageError(f"the word {options.word!r} is {'in' if where.startswith('neither') else 'not in'} {where}")
    panels: list[Panel] = [_cosines(found, options.word), _neighbours(found)] if len(found) == 2 else []
    panels += _elsewhere(found, options)
    panels += _looks(found, options.layer)
    count = "two texts" if len(found) == 2 else "its context"
    about = {"other": options.other, "word": options.word}
    return View(f"{options.word!r} in {count}", panels, about, CAVEAT, _controls(reading, options))


def find(side: Side, word: str) -> int | None:
    """The group of tokens that is the word, the last of several, whatever punctuation stands beside it."""
    labels = side.groups.labels
    for seen in (str, str.casefold):
        for group in reversed(range(len(labels))):
            if seen(word) in (seen(labels[group]), seen(labels[group]).strip(string.punctuation)):
                return group
    return None


def _placed(reading: Reading, group: int) -> Placed:
    side = reading.sides[0]
    groups = side.groups
    vectors = {name: wide(group_means(value[0], reading)) for name, value in layers_of(reading).items()}
    return Placed(reading, side, groups, group, vectors)


def _cosines(pair: list[Placed], word: str) -> Curves:
    """Of the word in both texts, and for comparison of the word and the other words."""
    first, second = pair
    both, apart = [], []
    for name in first.vectors:
        one, two = first.vectors[name], second.vectors[name]
        both.append(_cosine(one[first.group], two[second.group]))
        strangers = [_cosine(one[first.group], one[other]) for other in first.others()]
        strangers += [_cosine(two[second.group], two[other]) for other in second.others()]
        apart += [sum(strangers) / len(strangers)] if strangers else []
    lines = {f"{word} in both texts": points(range(len(both)), both)}
    if apart:
        lines[f"{word} and other words"] = points(range(len(apart)), apart)
    note = (
        f"0 is before the first layer and {len(both) - 1} what leaves the model: {', '.join(first.vectors)}. "
        f"Compared are {first.told} of the first text and {second.told} of the second; of several places "
        "the last is taken."
    )
    return Curves(
        title="How alike the vectors are, before the first layer and after each",
        lines=lines,
        x="layer",
        y="cosine",
        note=note,
        key="cosines",
    )


def _neighbours(pair: list[Placed]) -> Listing:
    """Words of both texts whose vectors, as they leave the model, are nearest to that of the word in each."""
    rows: list[list[str | float | None]] = [[] for _ in range(NEIGHBOURS)]
    for one in pair:
        vector = one.vectors[AFTER][one.group]
        near: list[tuple[float, str]] = []
        for text, other in enumerate(pair, start=1):
            for group in [*other.others(), *([other.group] if other is not one else [])]:
                cosine = _cosine(vector, other.vectors[AFTER][group])
                near.append((cosine, numbered(other.groups.labels[group], text)))
        near.sort(key=lambda found: -found[0])
        for row, (cosine, label) in zip(rows, [*near, *[(None, None)] * NEIGHBOURS], strict=False):
            row += [label, cosine]
    return Listing(
        title="What lies near it in the end",
        columns=["near it in the first text", "cosine#", "near it in the second", "cosine#"],
        rows=rows,
        note="Words of both texts, with the number of their text. A word that stands there again may be near itself.",
        key="neighbours",
    )


def _elsewhere(found: list[Placed], options: Options) -> list[Panel]:
    """Words of other sentences whose vectors are nearest to that of the word in each text.

    What all vectors share is taken off before they are compared: the mean of the words of those sentences.
    """
    can = found[0].reading.can
    known = contexts(found[0].reading.owner) if can.tokens and not can.source else Contexts([])
    if not known.readings:
        return []
    layer = AFTER if options.layer is None else f"layer {options.layer}"
    if layer not in found[0].vectors:
        raise UsageError(f"layer {options.layer}: the model has layers 1 to {len(found[0].vectors) - 2}")
    places, vectors = words_in(known, layer)
    mean = vectors.mean(0)
    panels: list[Panel] = []
    for number, one in enumerate(found, start=1):
        own = one.vectors[layer][one.group] - mean
        cosines = torch.nn.functional.cosine_similarity(own[None], vectors - mean, dim=-1)
        order = cosines.argsort(descending=True, stable=True)[:ELSEWHERE].tolist()
        rows: list[list[str | float | None]] = []
        for place in order:
            sentence, group = places[place]
            text = known.readings[sentence]
            rows.append([text.sides[0].groups.labels[group], float(cosines[place]), snippet(text, group)])
        which = f" in {'the first' if number == 1 else 'the second'}" if len(found) == 2 else ""
        panels.append(
            Listing(
                title=f"What lies near it elsewhere{which}",
                columns=["word", "cosine#", "in"],
                rows=rows,
                note=f"{len(places)} words of {len(known.readings)} sentences, {_called(layer)}, less their mean.",
                key=f"elsewhere.{number}",
            )
        )
    return panels


def _called(layer: str) -> str:
    return "as they leave the model" if layer == AFTER else f"after {layer}"


def _looks(pair: list[Placed], layer: int | None) -> list[Panel]:
    """What the word looks at in each text, the mean over the heads of a layer; nothing without attention."""
    rows: list[list[str | float | None]] = [[] for _ in range(NEIGHBOURS)]
    told = 0
    for one in pair:
        found = [site for site in sites(one.reading, "attention") if site.rows.name == one.side.name]
        if not found:
            return []
        site = directions(found, layer, None)[0]
        told = site.layer
        tap = site.tap("attention")
        weights = one.reading.glimpse(tap)[tap][0].mean(0)  # (T, S)
        row = weights[list(one.groups.members[one.group])].mean(0)
        by_group = [float(row[list(members)].sum()) for members in one.groups.members]
        best = sorted(range(len(by_group)), key=lambda group: -by_group[group])
        for line, group in zip(rows, [*best, *[None] * NEIGHBOURS], strict=False):
            line += [None, None] if group is None else [one.groups.labels[group], by_group[group]]
    columns = ["in the first text", "weight#", "in the second", "weight#"] if len(pair) == 2 else ["word", "weight#"]
    return [
        Listing(title=f"What it looks at in layer {told}, the mean over heads", columns=columns, rows=rows, key="looks")
    ]


def _controls(reading: Reading, options: Options) -> list[Control]:
    found = [site for site in sites(reading, "attention") if site.rows.name == reading.sides[0].name]
    layers = sorted({site.layer for site in found})
    value = options.layer or max(layers, default=None)
    layer = Control(name="layer", label="layer", kind="choice", value=value, values=layers)
    return [
        Control(name="other", label="other text", kind="text", value=options.other),
        Control(name="word", label="word", kind="text", value=options.word),
        *([layer] if layers else []),
    ]


def _cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(one, other, dim=-1))


register_look(
    Look(
        "meaning",
        "what a word means in its context: its vector in two texts, layer by layer, and what lies near it",
        meaning,
        fits=lambda can: can.tokens and not can.fitted,
    )
)
