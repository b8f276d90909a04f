"""The first picture of the README: a fact is told once; what each model still knows of it, and where GPT looks for it.

Two shapes, for screens and phones, each for light and dark pages, out of one comparison:

    regard compare --models ngram,rnn,lstm,gpt,mamba --out runs/first
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard.charts.drawing import Box, Dot, Drawing, Look, Words
from regard.charts.drawing import Path as Line
from regard.charts.plot import Axis, Frame, Plot
from regard.charts.svg import svg
from regard.data.worlds import world
from regard.terminal.label import wrapped

TITLE = "A fact is told once. Who still knows it?"
TITLE_IN_TWO = ("A fact is told once.", "Who still knows it?")
FAR, FIRST_WORDS = range(28, 35), 6
COMMAND = "regard compare --models ngram,rnn,lstm,gpt,mamba"
NAMES = {"ngram": "n-gram", "rnn": "RNN", "lstm": "LSTM", "gpt": "GPT", "mamba": "Mamba"}
MIDDLE = [2, 3.5, 6.5, 12.5, 24.5, 48.5, 96.5]  # of the distances 2, 3-4, 5-8 and so on
WIDE, NARROW = 900, 420


@dataclass(frozen=True)
class Theme:
    """Colours of a page. shade: of what is looked at most."""

    ground: str
    ink: str
    faint: str
    rule: str
    shade: tuple[int, int, int]
    models: dict[str, str]


LIGHT = Theme(
    *("#ffffff", "#1f2328", "#59636e", "#d1d9e0", (9, 105, 218)),
    {"ngram": "#6e7781", "rnn": "#8250df", "lstm": "#bf5600", "gpt": "#0969da", "mamba": "#0a7f4f"},
)
DARK = Theme(
    *("#0d1117", "#f0f6fc", "#9198a1", "#3d444d", (56, 139, 253)),
    {"ngram": "#9198a1", "rnn": "#bc8cff", "lstm": "#f0883e", "gpt": "#58a6ff", "mamba": "#3fb950"},
)


@dataclass(frozen=True)
class Found:
    """What was measured: recall by distance, the chance of the answer, and where a head of GPT looks for it."""

    answer: str
    recall: dict[str, list[float]]
    chance: dict[str, float]
    words: list[str]
    looks: np.ndarray
    head: str


def pictures(folder: Path) -> dict[str, str]:
    """The four pictures of a comparison, by name."""
    seen = found(folder)
    made = {}
    for shape, is_wide in (("wide", True), ("narrow", False)):
        for name, theme in (("light", LIGHT), ("dark", DARK)):
            text = svg(draw(seen, theme, is_wide))
            made[f"{shape}-{name}.svg"] = text.replace('fill="#ffffff"/>', f'fill="{theme.ground}"/>', 1)
    return made


def found(folder: Path) -> Found:
    """The numbers of a comparison."""
    rows = json.loads((folder / "report.json").read_text(encoding="utf-8"))["rows"]
    recall = {row["label"]: list(row["runs"][0]["slices"]["recall by distance"].values()) for row in rows}
    note, answer = asked()
    chance = {name: _chance(regard.load(folder / name, device="cpu"), note, answer) for name in NAMES}
    looks = _looks(regard.load(folder / "gpt", device="cpu"), note, answer)
    return Found(answer, {name: recall[name] for name in NAMES}, chance, *looks)


def asked() -> tuple[str, str]:
    """The first of the held-out notes that asks for something told about thirty words before, and what that was."""
    witness = world("witness")
    for document in witness.documents("valid"):
        words = [word.strip() for word in witness.split(document)]
        for place, distance in witness.recall_points(document):
            if distance in FAR and place - distance < FIRST_WORDS:
                return " ".join(words[:place]), words[place]
    raise ValueError("no note asks for what was told at its beginning")


def _chance(run: Any, note: str, answer: str) -> float:
    """What a model gives the answer."""
    return math.exp(run.score(f"{note} {answer}").to_dict()["tokens"][-1]["log_prob"])


def _looks(run: Any, note: str, answer: str) -> tuple[list[str], np.ndarray, str]:
    """The words, and of all heads the row of the one that looks most from the question at what was told."""
    choices = {control.name: control.values for control in run.explain(note, "attention").controls}
    rows = {}
    for layer in choices["layer"]:
        for head in filter(None, choices["head"]):
            panel = run.explain(note, "attention", layer=layer, head=head)["weights"]
            rows[f"layer {layer}, head {head}"] = np.asarray(panel.weights)[-1]
    words = list(panel.columns)
    name = max(rows, key=lambda one: rows[one][words.index(answer)])
    return words[1:], rows[name][1:], name


@dataclass(frozen=True)
class Sheet:
    """A drawing in the colours of a page."""

    drawing: Drawing
    theme: Theme
    left: float
    size: float = 15

    @property
    def look(self) -> Look:
        return Look(self.size, self.theme.ink)

    @property
    def faint(self) -> Look:
        return Look(self.size - 2, self.theme.faint)

    def say(self, text: str, look: Look, x: float | None = None, y: float | None = None, anchor: str = "start") -> None:
        place = self.left if x is None else x
        self.drawing.add(Words(place, self.drawing.y if y is None else y, text, look, anchor))


def draw(seen: Found, theme: Theme, is_wide: bool) -> Drawing:
    """One of the four pictures."""
    width, left = (WIDE, 30) if is_wide else (NARROW, 16)
    sheet = Sheet(Drawing(title=TITLE, width=width, y=0, below=0), theme, left)
    drawing, size = sheet.drawing, 27 if is_wide else 22
    drawing.y = 20 + size
    for line in [TITLE] if is_wide else TITLE_IN_TWO:
        sheet.say(line, replace(sheet.look, size=size, bold=True))
        drawing.y += 1.3 * size
    drawing.y += 2
    _note(sheet, seen, width - left)
    top = drawing.y + 36
    if is_wide:
        _chances(sheet, seen, (left, top, 330))
        _recall(sheet, seen, (left + 400, top, width - left, 196))
    else:
        _chances(sheet, seen, (left, top, width - 2 * left))
        _recall(sheet, seen, (left, drawing.y + 44, width - left, 190))
    drawing.y += 14
    sheet.say("The same notes and budget for all, minutes on two cores:", sheet.faint, y=drawing.y + 4)
    drawing.y += 10
    sheet.say(COMMAND, replace(sheet.faint, mono=True, size=13.5 if is_wide else 12), y=drawing.y + 16)
    drawing.fixed = drawing.y + 36
    return drawing


def _note(sheet: Sheet, seen: Found, right: float) -> None:
    """The words that were read, as dark as they are looked at, and the blank that is to be filled."""
    drawing, theme = sheet.drawing, sheet.theme
    look = replace(sheet.look, size=17)
    x, high = sheet.left, 30
    for place, (word, weight) in enumerate(zip(seen.words, seen.looks, strict=True)):
        is_last = place == len(seen.words) - 1
        is_said = is_last or word == seen.answer
        shown = replace(look, bold=is_said)
        wide = shown.measure(word) + 8
        if x + wide > right - (60 if is_last else 0):
            x, drawing.y = sheet.left, drawing.y + high + 4
        share = min(1.0, float(weight)) ** 0.7
        if share > 0.06:
            drawing.add(Box(x, drawing.y, wide, high, _mixed(theme, share)))
        ink = "#ffffff" if share > 0.5 else theme.ink if is_said else theme.faint
        drawing.add(Words(x + wide / 2, drawing.y + 21, word, replace(shown, colour=ink), "middle"))
        x += wide + 2
    drawing.add(Line([(x + 6, drawing.y + 24), (x + 52, drawing.y + 24)], theme.ink, 2.5))
    drawing.y += high + 20
    weight = float(seen.looks[seen.words.index(seen.answer)])
    told = f"Shaded: where GPT looks before it answers ({seen.head}: {weight:.0%} on {seen.answer!r})."
    for line in wrapped(told, right - sheet.left, sheet.faint.measure):
        sheet.say(line, sheet.faint)
        drawing.y += 18
    drawing.y -= 18


def _mixed(theme: Theme, share: float) -> str:
    ground = [int(theme.ground[place : place + 2], 16) for place in (1, 3, 5)]
    mixed = (round(low + share * (high - low)) for low, high in zip(ground, theme.shade, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _chances(sheet: Sheet, seen: Found, place: tuple[float, float, float]) -> None:
    """A bar for each model: how sure it is of the answer."""
    drawing, theme, (left, top, wide) = sheet.drawing, sheet.theme, place
    sheet.say(f"The chance that each gives {seen.answer!r}", replace(sheet.look, bold=True), left, top)
    start, long = left + 68, wide - 68 - 52
    for number, (name, chance) in enumerate(seen.chance.items()):
        y = top + 20 + 38 * number
        sheet.say(NAMES[name], sheet.look, start - 10, y + 19, "end")
        drawing.add(Box(start, y, long, 26, _mixed(replace(theme, shade=_rgb(theme.rule)), 0.45)))
        drawing.add(Box(start, y, max(3.0, long * chance), 26, theme.models[name]))
        sheet.say(f"{chance:.0%}", replace(sheet.look, bold=True), start + long + 8, y + 19)
    drawing.y = top + 20 + 38 * len(seen.chance)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _recall(sheet: Sheet, seen: Found, place: tuple[float, float, float, float]) -> None:
    """A line for each model: how many facts it still knows so many words later."""
    drawing, theme, (left, top, right, high) = sheet.drawing, sheet.theme, place
    sheet.say("Facts recalled, by words since they were told", replace(sheet.look, bold=True), left, top)
    marks = tuple((float(at), str(at)) for at in (2, 4, 8, 16, 32, 64, 128))
    plot = Plot(Axis("", log=True, marks=marks), Axis(""), (2.0, 128.0), (0.0, 1.0))
    frame = Frame(plot, left + 44, top + 30, right - left - 44 - 70, high - 40, sheet.faint, theme.rule)
    frame.draw_across(drawing)
    for share in (0.0, 0.5, 1.0):
        _, y = frame.place(2.0, share)
        drawing.add(Line([(frame.left, y), (frame.left + frame.width, y)], theme.rule, 1))
        sheet.say(f"{share:.0%}", sheet.faint, frame.left - 8, y + 5, "end")
    ends = []
    for name, shares in seen.recall.items():
        points = [frame.place(at, share) for at, share in zip(MIDDLE, shares, strict=True)]
        drawing.add(Line(points, theme.models[name], 3.5), *(Dot(x, y, 4, theme.models[name]) for x, y in points))
        ends.append((points[-1][1], name))
    free = frame.top + frame.height - 2.0  # names that would touch stand above each other
    for y, name in sorted(ends, reverse=True):
        free = min(y + 5, free)
        look = Look(sheet.size, theme.models[name], bold=True)
        sheet.say(NAMES[name], look, frame.place(MIDDLE[-1], 0.0)[0] + 12, free)
        free -= 17
    drawing.y = max(drawing.y, top + high + 26)
