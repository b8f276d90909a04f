"""The pictures of these pages, drawn again: worked examples, and one view of a trained run of every family.

    python docs/pictures.py steps
    python docs/pictures.py inside --runs runs

Runs are looked for by the names in INSIDE; the page docs/inside.md says how each was trained.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import regard
from regard.explain.worked import example, examples

DOCS = Path(__file__).parent
STORY = (
    "Jonas lived in a small house near the harbour . Jonas had a blue map . At the end of the day Jonas still had the"
)


@dataclass(frozen=True)
class Shown:
    """A view of a run: what it reads, which look, and options. run: its name, where it is not that of the picture."""

    given: str
    view: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    run: str = ""


INSIDE = {
    "ngram": Shown("Jonas lived in a small house near the harbour ."),
    "dan": Shown("Jonas lived in a small house near the"),
    "fnn": Shown("Jonas lived in a small house near the"),
    "rnn": Shown("Jonas lived in a small house near the harbour .", "forgetting"),
    "lstm": Shown("Jonas lived in a small house . Jonas had a blue map ."),
    "gru": Shown("Jonas lived in a small house . Jonas had a blue map ."),
    "seq2seq": Shown("the small dog sees the cat", "drop", {"position": 2}),
    "bahdanau": Shown("the small dog sees the cat"),
    "gnmt": Shown("the small dog sees the cat", "next"),
    "transformer": Shown("the small dog sees the cat"),
    "bert": Shown("Jonas lived in a small [MASK] near the harbour .", "fill"),
    "gpt": Shown(STORY, "attention", {"layer": 2}),
    "backpack": Shown("Jonas lived in a small house near the harbour . Jonas had a"),
    "s4d": Shown("Jonas lived in a small house near the harbour .", "kernels"),
    "mamba": Shown("Jonas lived in a small house near the harbour . Jonas had a blue map .", "selection"),
    "mamba2": Shown("Jonas lived in a small house near the harbour .", "selection"),
    "reviews": Shown("the cinema was full . i do not think the ending is clumsy ."),
    "tags": Shown("The old man the boats near the market .", "answer"),
    "shapes": Shown(""),
    "market": Shown("", "forecast"),
    "flow": Shown("Jonas lived in a small house near the harbour .", "flow", run="gpt"),
    # Of weights of others, imported as docs/weights.md says.
    "lens": Shown("The capital of France is", "lens", run="gemma"),
    "neurons": Shown("The capital of France is", "neurons", {"layer": 13, "neuron": 1543}, run="gemma"),
    "induction": Shown("The capital of France is", "induction", run="gemma"),
    "meaning": Shown(
        "he sat on the bank of the river", "meaning", {"other": "the bank lends money", "word": "bank"}, run="minilm"
    ),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("what", choices=["steps", "inside"])
    options.add_argument("--runs", type=Path, default=Path("runs"))
    options.add_argument("--only", default="")
    given = options.parse_args()
    if given.what == "steps":
        _steps()
    else:
        _inside(given.runs, given.only)


def _steps() -> None:
    folder = DOCS / "steps"
    folder.mkdir(exist_ok=True)
    for name, about in examples().items():
        view = example(name)
        (folder / f"{name}.svg").write_text(view.to_svg(), encoding="utf-8")
        page = f"# {view.title}\n\n```\nregard explain steps {name}\n```\n\n{about}\n\n![{view.title}]({name}.svg)\n"
        (folder / f"{name}.md").write_text(page, encoding="utf-8")
        print(name)


def _inside(runs: Path, only: str) -> None:
    folder = DOCS / "inside"
    folder.mkdir(exist_ok=True)
    for name, shown in INSIDE.items():
        folder_of_run = runs / (shown.run or name)
        if (only and only != name) or not folder_of_run.exists():
            continue
        view = regard.load(folder_of_run, device="cpu").explain(shown.given, shown.view, **shown.options)
        (folder / f"{name}.svg").write_text(view.to_svg(), encoding="utf-8")
        print(name, view.name)


if __name__ == "__main__":
    main()
