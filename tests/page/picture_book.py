"""Views with known numbers, and a provider of them: what the page is tested with instead of trained runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from regard.charts.drawing import Drawing
from regard.charts.prose import nodes
from regard.charts.svg import svg
from regard.errors import TooLong, UsageError
from regard.explain.view import Bars, Control, Curves, Heat, Links, Listing, Note, Numbers, View
from regard.training.follow import Place

# Everything that could end a string, a script or an attribute, turn the direction of writing, or break a line.
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"`${1}`"
    " \u202eabc\u202c \u05e9\u05dc\u05d5\u05dd \u2028 \u2029 \x00\x1b &lt;b&gt; <!-- -->"
)
WORDS = ("the", "small", "dog", "sees", "the", "cat")
HEADS = (1, 2, 3)
LIMIT = 50  # words of the view that takes fewest


def weights_of(head: int, size: int = len(WORDS)) -> np.ndarray:
    """A causal map whose numbers depend on the head."""
    score = np.random.default_rng(head).normal(size=(size, size)) * 1.5
    score[np.triu_indices(size, 1)] = -np.inf
    power = np.exp(score - score.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


def attention(text: str = " ".join(WORDS), head: int = 1, position: int | None = None) -> View:
    """A map, ribbons, bars, curves and a table of the words of a text; a position is a word, without one the last."""
    words = text.split(" ")
    places = list(range(1, len(words) + 1))
    if position is not None and position not in places:
        raise UsageError(f"position {position}: the text has positions 1 to {len(words)}")
    weights = weights_of(head, len(words))
    sides = {"rows": words, "columns": words, "row_name": "from", "column_name": "to"}
    return View(
        name="attention",
        title=f"Attention of head {head}",
        panels=[
            Heat(key="map", title="Weights", weights=weights, note="Each row sums to 1.", **sides),
            Links(key="links", title="Ribbons", weights=weights, upper=words, lower=words, pairs=[(1, 1)]),
            Bars(key="next", title="Next", names=words[:3], values=[0.5, 0.25, -0.125], unit="share"),
            Curves(key="far", title="Far", lines={words[0]: [(1, 1.0), (10, 0.5)], "b": [(1, 0.9), (10, 0.1)]}, x="t"),
            Listing(key="heads", title="Heads", columns=["head", "entropy#"], rows=[["a", 0.7], [words[0], 0.1]]),
        ],
        about={"text": text, "head": head},
        caveat="What it does not prove.",
        controls=[
            Control(name="head", label="head", kind="choice", value=head, values=list(HEADS)),
            Control(name="position", label="position", kind="choice", value=position or places[-1], values=places),
        ],
        remake=lambda asked: attention(text, **{"head": head, "position": position} | asked),
    )


def steps(word: str = "A") -> View:
    """A calculation in five panels."""
    tokens = [word, word, "B", word]
    inputs = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    scores = inputs @ inputs.T
    masked = np.where(np.tril(np.ones((4, 4))) > 0, scores, np.nan)
    wide = np.arange(4 * 16).reshape(4, 16) / 7
    return View(
        name="steps",
        title=f"Attention over {word} {word} B {word}",
        panels=[
            Note(title="The question", text=f"Who looks at {word}?"),
            Numbers(key="inputs", title="Inputs", values=inputs, rows=tokens, equation="E"),
            Numbers(key="scores", title="Scores", values=masked, rows=tokens, columns=tokens, marked=[(2, 2)]),
            Numbers(key="wide", title="Wide", values=wide, rows=tokens, equation="Q = E W"),
            Heat(key="map", title="Shades", weights=weights_of(1, 4), rows=tokens, columns=tokens),
        ],
        about={"example": "ab"},
    )


def large(size: int = 2000) -> View:
    """A map of so many words that it goes to the page in eight bits a weight."""
    names = [f"w{place}" for place in range(size)]
    return View(
        "Large",
        [Heat(key="map", title="Weights", weights=weights_of(5, size), rows=names, columns=names)],
        name="attention",
    )


def sitting() -> dict[str, Any]:
    """A lecture of four screens that was sat: prose, code, outputs of every kind, an exercise with a solution."""
    map_of_head = {"kind": "view", "view": attention().to_page()}
    bars = svg(Drawing(title="A drawing", width=200))
    screens = [
        _screen("Counting", "idea", "Begin slowly.", [{"prose": nodes("*How far?* The sum is $\\sum_{i=1}^n x_i$.")}]),
        _screen("A picture", "picture", "", [_code("show()", map_of_head), {"prose": nodes(HOSTILE.replace("$", ""))}]),
        _screen("Steps", "idea", "Go on.", [_code("example('ab')", {"kind": "view", "view": steps().to_page()})]),
        _screen(
            "Yours",
            "exercise",
            "Wait.",
            [
                {"prose": nodes("How much is 1 + 1?")},
                _code(f"print({HOSTILE!r})", {"kind": "text", "text": HOSTILE}, {"kind": "svg", "svg": bars}),
                _code("mine = 2", is_solution=True),
                {"prose": nodes("It is 2."), "is_solution": True},
            ],
        ),
    ]
    about = {"name": "counting", "number": 1, "title": "Counting", "question": "How far does counting get?"}
    return about | {"seconds": 1.0, "screens": screens}


def _screen(title: str, kind: str, notes: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    return {"title": title, "kind": kind, "notes": notes, "cells": cells}


def _code(code: str, *outputs: dict[str, Any], is_solution: bool = False) -> dict[str, Any]:
    return {"code": code, "is_solution": is_solution, "outputs": list(outputs)}


class Book:
    """A provider without runs on disk. `asked` tells what the page wanted."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.new: list[str] = []
        self.sat: list[Any] = [{"sitting": sitting(), "is_live": True}]

    def runs(self) -> list[dict[str, Any]]:
        names = (*self.new, "gpt", "big", HOSTILE)
        told = [{"name": f"runs/{name}", "label": name, "path": f"runs/{name}"} for name in names]
        about = {"model": "gpt", "task": "text"}
        return [one | about for one in told] + [{"name": "x", "label": "x", "path": "x", "error": "damaged"}]

    def offer(self, run: str) -> dict[str, Any]:
        views = {"attention": "which word looks at which", "steps": "every number", "large": "a large map"}
        limits = {"attention": 2000, "steps": LIMIT, "large": 2000}
        return {"views": views, "limits": limits, "example": " ".join(WORDS)}

    def tokens(self, run: str, text: str) -> int | None:
        return len(text.split(" "))

    def view(self, run: str, name: str | None, text: str, options: Mapping[str, Any]) -> View:
        self.asked.append((text, dict(options)))
        if "refuse" in text:
            raise UsageError("the text has 9 tokens, and the model's window 8")
        if name == "steps" and len(text.split(" ")) > LIMIT:
            fits = len(" ".join(text.split(" ")[:LIMIT]))
            told = f"the text has {len(text.split(' '))} tokens, and the view steps takes at most {LIMIT}"
            raise TooLong(told, LIMIT, fits)
        if name == "steps":
            return steps(text)
        if name == "large":
            return replace(large(1500 if run == "runs/gpt" else 600), name="large")
        return attention(text, **options)

    def examples(self) -> dict[str, str]:
        return {"ab": "attention over A A B A", "hostile": HOSTILE}

    def lectures(self) -> list[dict[str, Any]]:
        about = {"name": "counting", "number": 1, "title": "Counting", "question": "How far does counting get?"}
        hostile = {"name": "hostile", "number": 2, "title": HOSTILE, "question": HOSTILE}
        return [about | {"is_ready": True}, hostile | {"is_ready": False}]

    def sitting(self, name: str, again: bool) -> dict[str, Any]:
        self.asked.append((name, again))
        if name == "hostile":
            raise UsageError("lecture hostile, screen 1 (One), cell 1: NameError: no")
        return self.sat.pop(0) if len(self.sat) > 1 else self.sat[0]

    def view_of_lecture(self, name: str, place: list[int], values: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((place, values))
        return attention(**values).to_page()

    def close(self) -> None:
        self.closed = True

    def example(self, name: str) -> View:
        return steps(HOSTILE if name == "hostile" else "A")

    def progress(self, asked: Mapping[str, Place]) -> dict[str, Any]:
        """Two evaluations of every run, and none after them."""
        told = {"mark": "m", "has_more": False, "is_new": False, "is_training": False, "offset": 2}
        points = [{"step": 1, "tokens": 10, "valid_loss": 3.0}, {"step": 100, "tokens": 1000, "valid_loss": 2.0}]
        return {name: told | {"points": points[place.offset :]} for name, place in asked.items()}
