"""Tags of a model that is fitted to words: what each word says for each tag, what decided, what tags say of neighbours.

    score of a tag at a word  =  emission + what the tags beside it add

Of a conditional random field an emission is a sum over features, and shown are those that speak most for the tag that
was answered against the best other one. Of a hidden Markov model it is log p(word | tag).
"""

from __future__ import annotations

import numpy as np
import torch

from regard.core.tap import plain
from regard.explain.look import Look, Options, place_of, position_control, register_look
from regard.explain.view import Bars, Heat, Listing, Note, Panel, View
from regard.fitting.evidence import Evidence, WeighsWords
from regard.tasks.reading import Reading
from regard.tasks.tag_decoding import decoder_of

MOST = 16  # features, and tags, that are shown
TOLD = 3  # features in the line of a word
CAVEAT = (
    "Features overlap: a word speaks through itself, its letters and its shape, and what each is given of that is the "
    "model's own choice."
)


def tags(reading: Reading, options: Options) -> View:
    """The tag of every word, what decided for it, and the emissions of all words."""
    words, answers = list(reading.main.labels), _answers(reading)
    emissions = _emissions(reading)
    chances = reading.run()[0].double().softmax(-1).cpu().numpy()
    place = place_of(reading.main, options.position)
    order = np.argsort(-chances.max(0), kind="stable").tolist()[:MOST]
    names = [reading.named(number) for number in order]
    low = float(np.maximum(emissions[:, order], emissions.max(1, keepdims=True) - 20).min())
    panels: list[Panel] = [
        Listing(
            title="The tag of each word",
            key="words",
            columns=("word", "tag", "chance", "else", *(("what decided",) if _weighs(reading) else ())),
            rows=[_line(reading, words, number, answers[number], chances[number]) for number in range(len(words))],
        ),
        Heat(
            title="How likely each tag is, all ways to tag the sentence together",
            key="chances",
            weights=chances[:, order],
            rows=words,
            columns=names,
            scale="chance",
        ),
        Heat(
            title="Emissions: what each word says for each tag, its neighbours' tags apart",
            key="emissions",
            weights=np.maximum(emissions[:, order], low),
            rows=words,
            columns=names,
            low=low,
            high=float(emissions[:, order].max()),
            scale="score",
        ),
        *_decided(reading, words, place, answers),
    ]
    about = {"tags": [reading.named(number) for number in answers], "position": place}
    controls = [position_control(reading.main, options.position)]
    return View("Which tag each word was given, and why", panels, about, CAVEAT if _weighs(reading) else "", controls)


def transitions(reading: Reading, _options: Options) -> View:
    """What each tag says of the next one, of the first and of the last."""
    decoder = decoder_of(plain(reading.owner.model))
    assert decoder is not None
    chain = decoder.chain()
    between, start, end = (part.detach().cpu().double().numpy() for part in (chain.between, chain.start, chain.end))
    strength = np.abs(between).sum(0) + np.abs(between).sum(1)
    shown = sorted(np.argsort(-strength, kind="stable")[: 2 * MOST].tolist())
    names = [reading.named(number) for number in shown]
    table = np.vstack([start[shown], between[np.ix_(shown, shown)]])
    table = np.hstack([table, np.append(np.nan, end[shown])[:, None]])
    most = float(np.nanmax(np.abs(table))) or 1.0
    signed = bool(np.nanmax(table) > 0)
    panels: list[Panel] = [
        Heat(
            title="From the tag of a row to the tag of a column",
            key="transitions",
            weights=np.nan_to_num(table, nan=0.0),
            rows=["<s>", *names],
            columns=[*names, "</s>"],
            row_name="before",
            column_name="after",
            low=-most,
            high=most if signed else 0.0,
            scale="weight" if signed else "log p",
        ),
        _strongest(names, between[np.ix_(shown, shown)]),
    ]
    left = "" if len(shown) == len(start) else f"the {len(shown)} of {len(start):,} tags with the largest weights"
    return View("What tags say of their neighbours", panels, {"tags": len(start)}, left)


def _strongest(names: list[str], between: np.ndarray) -> Listing:
    order = np.argsort(-between, axis=None, kind="stable")
    chosen = [*order[:MOST], *order[::-1][:MOST]] if len(order) > 2 * MOST else list(order)
    rows = [(names[at // len(names)], names[at % len(names)], f"{between.flat[at]:+.3f}") for at in map(int, chosen)]
    return Listing(
        title="The largest and the smallest", key="strongest", columns=("before", "after", "weight"), rows=rows
    )


def _answers(reading: Reading) -> list[int]:
    """The tags that the run answers with, by number."""
    run = reading.owner
    told = run.answers([reading.given])[0].details["tags"]
    place = {name: number for number, name in enumerate(run.processor.classes)}
    return [place[tag] for tag in told]


def _emissions(reading: Reading) -> np.ndarray:
    with torch.no_grad():
        return plain(reading.owner.model)(*reading.inputs)[0][0].cpu().double().numpy()


def _weighs(reading: Reading) -> WeighsWords | None:
    model = plain(reading.owner.model)
    return model if isinstance(model, WeighsWords) else None


def _line(reading: Reading, words: list[str], place: int, answer: int, chances: np.ndarray) -> tuple[str, ...]:
    other = _other(chances, answer)
    line = (words[place], reading.named(answer), f"{chances[answer]:.3f}")
    line += ("",) if other is None else (f"{reading.named(other)} {chances[other]:.3f}",)
    model = _weighs(reading)
    if model is None:
        return line
    found = model.evidence(words, place)
    parts = _against(found, answer, other)
    order = np.argsort(-parts, kind="stable")[:TOLD]
    return (*line, ", ".join(f"{found.names[at]} {parts[at]:+.2f}" for at in order))


def _decided(reading: Reading, words: list[str], place: int, answers: list[int]) -> list[Panel]:
    """What the features of one word say, of a model that has such."""
    model = _weighs(reading)
    if model is None:
        return []
    chances = reading.run()[0, place].double().softmax(-1).cpu().numpy()
    found, answer = model.evidence(words, place), answers[place]
    other = _other(chances, answer)
    parts = _against(found, answer, other)
    order = np.argsort(-np.abs(parts), kind="stable")[:MOST]
    told = f"{reading.named(answer)!r}" + ("" if other is None else f" against {reading.named(other)!r}")
    title = f"What each feature of {words[place]!r} says for {told}"
    values = parts[order].tolist()
    rest = float(parts.sum() - parts[order].sum())
    note = f"The {len(parts) - len(order)} others add {rest:+.3f} together." if len(parts) > len(order) else ""
    bars = Bars(
        title=title, key="features", names=[found.names[at] for at in order], values=values, unit="score", note=note
    )
    return [bars, Note(text=f"{parts.sum():+.3f} by {len(parts)} features for {told}", style="answer")]


def _against(found: Evidence, answer: int, other: int | None) -> np.ndarray:
    return found.weights[:, answer] - (0 if other is None else found.weights[:, other])


def _other(chances: np.ndarray, answer: int) -> int | None:
    """The likeliest tag that was not answered."""
    return next((number for number in np.argsort(-chances, kind="stable").tolist() if number != answer), None)


register_look(Look("tags", "which tag each word was given, and why", tags, fits=lambda can: "emissions" in can.shows))
register_look(
    Look("transitions", "what tags say of their neighbours", transitions, fits=lambda can: "transitions" in can.shows)
)
