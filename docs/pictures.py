"""The pictures of these pages, drawn again; each says at which commit.

    python docs/pictures.py all                    everything below: an hour on two cores, most of it training
    python docs/pictures.py steps                  worked examples
    python docs/pictures.py inside --runs runs     one view of a trained run of every family, and the page of the lab
    python docs/pictures.py gallery --runs runs    the gallery
    python docs/pictures.py first --runs runs      the first picture of the README
    python docs/pictures.py models                 what models that are fitted at once show
    python docs/pictures.py lectures               the pages of the lectures
    python docs/pictures.py card                   the picture that stands for a link to these pages
    python docs/pictures.py stamp                  nothing drawn: the commit of each figure that does not say it

A run is looked for by its name in INSIDE and trained where there is none; one of weights of others is imported as
docs/weights.md says, or its picture stays as it is. A picture that comes out the same keeps its commit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import gallery
from figure_file import ROOT, stamp_all, write

import regard
from regard.explain.worked import example, examples

DOCS = Path(__file__).resolve().parent
STORY = (
    "Jonas lived in a small house near the harbour . Jonas had a blue map . At the end of the day Jonas still had the"
)


@dataclass(frozen=True)
class Shown:
    """A view of a run: what it reads, which look, and options.

    run: its name, where it is not that of the picture. data: what it is trained on; None: its weights are of others.
    """

    given: str
    view: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    run: str = ""
    data: str | None = "world:stories"


INSIDE = {
    "ngram": Shown("Jonas lived in a small house near the harbour ."),
    "dan": Shown("Jonas lived in a small house near the"),
    "fnn": Shown("Jonas lived in a small house near the"),
    "rnn": Shown("Jonas lived in a small house near the harbour .", "forgetting"),
    "lstm": Shown("Jonas lived in a small house . Jonas had a blue map ."),
    "gru": Shown("Jonas lived in a small house . Jonas had a blue map ."),
    "seq2seq": Shown("the small dog sees the cat", "drop", {"position": 2}, data="world:translation"),
    "bahdanau": Shown("the small dog sees the cat", data="world:translation"),
    "gnmt": Shown("the small dog sees the cat", "next", data="world:translation"),
    "transformer": Shown("the small dog sees the cat", data="world:translation"),
    "bert": Shown("Jonas lived in a small [MASK] near the harbour .", "fill"),
    "gpt": Shown(STORY, "attention", {"layer": 2}),
    "backpack": Shown("Jonas lived in a small house near the harbour . Jonas had a"),
    "s4d": Shown("Jonas lived in a small house near the harbour .", "kernels"),
    "mamba": Shown("Jonas lived in a small house near the harbour . Jonas had a blue map .", "selection"),
    "mamba2": Shown("Jonas lived in a small house near the harbour .", "selection"),
    "reviews": Shown("the cinema was full . i do not think the ending is clumsy .", data="world:reviews"),
    "tags": Shown("The old man the boats near the market .", "answer", data="world:tags"),
    "shapes": Shown("", data="world:shapes"),
    "market": Shown("", "forecast", data="world:electricity"),
    "flow": Shown("Jonas lived in a small house near the harbour .", "flow", run="gpt"),
    # Of weights of others, imported as docs/weights.md says.
    "lens": Shown("The capital of France is", "lens", run="gemma", data=None),
    "neurons": Shown("The capital of France is", "neurons", {"layer": 13, "neuron": 1543}, run="gemma", data=None),
    "induction": Shown("The capital of France is", "induction", run="gemma", data=None),
    "meaning": Shown(
        "he sat on the bank of the river",
        "meaning",
        {"other": "the bank lends money", "word": "bank"},
        run="minilm",
        data=None,
    ),
}


LAB = {"run": "bahdanau", "view": "alignment", "text": "the small dog sees the cat"}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=[*KINDS, "stamp", "all"])
    options.add_argument("--runs", type=Path, default=Path("runs"))
    options.add_argument("--only", default="", help="one of the pictures of inside or of the gallery")
    given = options.parse_args()
    for kind, draw in KINDS.items():
        if given.what in (kind, "all"):
            draw(given)
    for path in stamp_all():
        print("new:", path.relative_to(ROOT))


def _steps(_given: argparse.Namespace) -> None:
    for name, about in examples().items():
        view = example(name)
        write(DOCS / "steps" / f"{name}.svg", view.to_svg())
        page = f"# {view.title}\n\n```\nregard explain steps {name}\n```\n\n{about}\n\n![{view.title}]({name}.svg)\n"
        (DOCS / "steps" / f"{name}.md").write_text(page, encoding="utf-8")
        print(name)


def _inside(given: argparse.Namespace) -> None:
    # Pictures say where their run lies: below the current folder, wherever that is.
    with contextlib.chdir(given.runs.resolve().parent):
        for name, shown in INSIDE.items():
            if given.only in ("", name):
                _draw(name, shown, Path(given.runs.name) / (shown.run or name))
    if not given.only:
        _lab(given.runs)


def _draw(name: str, shown: Shown, folder: Path) -> None:
    if not folder.exists() and shown.data is None:
        print(name, f"stays as it is: there is no run {folder}")
        return
    run = regard.load(folder, device="cpu") if folder.exists() else _trained(folder.name, shown, folder)
    view = run.explain(shown.given, shown.view, **shown.options)
    write(DOCS / "inside" / f"{name}.svg", view.to_svg())
    print(name, view.name)


def _trained(name: str, shown: Shown, folder: Path) -> Any:
    """The model of that name on the world that docs/inside.md names, or the one that its task has by default."""
    model = name if name in regard.model_names() else None
    return regard.train(model, shown.data, budget="60s", out=folder, quiet=True, device="cpu")


def _lab(runs: Path) -> None:
    """The page of regard lab in a browser."""
    names = sorted(path.parent.name for path in runs.glob("*/config.json"))
    words = [sys.executable, "-m", "regard", "lab", *names, "--port", "0", "--json"]
    with subprocess.Popen(words, cwd=runs, stdout=subprocess.PIPE, text=True) as lab:
        try:
            assert lab.stdout is not None
            address = json.loads(lab.stdout.readline())["url"]
            write(DOCS / "inside" / "lab.png", _photograph(f"{address}#{urlencode(LAB)}", 1180, 1000))
        finally:
            lab.terminate()


def _photograph(address: str, width: int, height: int) -> bytes:
    """A page as it looks in chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1500)  # until what is drawn in steps is drawn
        taken = page.screenshot()
        browser.close()
    return taken


def _gallery(given: argparse.Namespace) -> None:
    gallery.make(given.runs, given.only)


def _first(given: argparse.Namespace) -> None:
    gallery.make_first(given.runs)


def _models(_given: argparse.Namespace) -> None:
    subprocess.run([sys.executable, str(DOCS / "models.py"), "pictures"], cwd=ROOT, check=True)


def _lectures(_given: argparse.Namespace) -> None:
    from regard.lectures import catalogue, markdown
    from regard.lectures.execution import screens

    for lecture in catalogue.lectures():
        print(markdown.write(lecture, screens(lecture), DOCS / "lectures"))


def _card(_given: argparse.Namespace) -> None:
    write(DOCS / "site" / "card.png", _photograph((DOCS / "site" / "card.svg").as_uri(), 1200, 630))


KINDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "steps": _steps,
    "inside": _inside,
    "gallery": _gallery,
    "first": _first,
    "models": _models,
    "lectures": _lectures,
    "card": _card,
}


if __name__ == "__main__":
    main()
