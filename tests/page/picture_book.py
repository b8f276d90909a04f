"""Views with known numbers, and a provider of them: what the page is tested with instead of trained runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

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


class Book:
    """A provider without runs on disk. `asked` tells what the page wanted."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.new: list[str] = []

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

    def example(self, name: str) -> View:
        return steps(HOSTILE if name == "hostile" else "A")

    def progress(self, asked: Mapping[str, Place]) -> dict[str, Any]:
        """Two evaluations of every run, and none after them."""
        told = {"mark": "m", "has_more": False, "is_new": False, "is_training": False, "offset": 2}
        points = [{"step": 1, "tokens": 10, "valid_loss": 3.0}, {"step": 100, "tokens": 1000, "valid_loss": 2.0}]
        return {name: told | {"points": points[place.offset :]} for name, place in asked.items()}
