"""The parts of the pages of models that the package tells of itself, written anew.

    python docs/models.py                 facts, cost and settings of every page, and the index: a minute
    python docs/models.py laws            the laws of every page: some minutes
    python docs/models.py pictures        what models show that docs/inside has no picture of, each of a small world

A page is written by hand. What stands between `<!-- regard: PART -->` and `<!-- end -->` is not: it is told by the
registry, by `regard check` and by counting operations.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from model_cost import operations, sizes

import regard
from regard.core import registry
from regard.core.config import Config
from regard.core.stack import MixerConfig
from regard.laws import LawResult, check_model
from regard.laws.check import LAWS
from regard.run.catalogue import ModelCard, citation, models
from regard.run.rate import rates_by_size
from regard.terminal.table import human

FOLDER = Path(__file__).resolve().parent / "models"
PART = re.compile(r"(<!-- regard: (\w+)([^>]*?) -->\n\n).*?(<!-- end -->\n)", re.DOTALL)
# What a model is fitted to before it is drawn, the text and the view that show it, and how many panels of that.
DRAWN = {
    "naive_bayes": ("world:reviews?train=400", "the film is not bad at all .", "evidence", 1),
    "linear": ("world:reviews?train=400", "the film is not bad at all .", "evidence", 1),
    "naive": ("world:electricity", "", "forecast", 1),
    "lear": ("world:electricity", "", "lags", 2),
    "dlinear": ("world:electricity", "", "lags", 3),
    "ibm1": ("world:translation?train=600", "the small dog sees the cat", "alignment", 2),
    "nearest": ("world:translation?train=600", "the small dog sees the cat", "neighbours", 2),
    "nearest_picture": ("world:shapes?train=200&valid=8", "", "neighbours", 2),
    "cloze": ("world:stories?train=300", "Jonas lived in a small [MASK] near the harbour .", "fill", 2),
    "most_frequent": ("world:tags?train=300", "The old man the boats near the market .", "tags", 2),
    "hmm": ("world:tags?train=300", "The old man the boats near the market .", "tags", 2),
    "crf": ("world:tags?train=300", "The old man the boats near the market .", "tags", 2),
    "ridge": ("world:ratings?train=400", "the plot is superb . the film is not awful .", "evidence", 1),
    "regressor": ("world:ratings?train=400", "the plot is superb . the film is not awful .", "number", 2),
    "multilabeller": ("world:topics?train=400", "he wrote of the song . nobody talked about the rain .", "number", 2),
    "linear_labels": ("world:topics?train=400", "he wrote of the song . nobody talked about the rain .", "evidence", 1),
}
STEPS = {"regressor": "300steps", "multilabeller": "300steps"}  # of those that learn by steps


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="?", choices=["facts", "laws", "pictures"], default="facts")
    options.add_argument("--only", default="", help="the name of one model")
    given = options.parse_args()
    cards = [card for card in own_models() if given.only in ("", card.name)]
    if given.what == "pictures":
        for name in [card.name for card in cards if card.name in DRAWN]:
            draw(name)
            print(name)
        return
    parts = {"laws": laws} if given.what == "laws" else FACTS
    for card in cards:
        path = FOLDER / f"{card.name}.md"
        path.write_text(renewed(path.read_text(encoding="utf-8"), card, parts), encoding="utf-8")
        print(card.name)
    if given.what == "facts":
        (FOLDER / "index.md").write_text(index((FOLDER / "index.md").read_text(encoding="utf-8")), encoding="utf-8")


def renewed(page: str, card: ModelCard, parts: dict[str, Callable[[ModelCard, list[str]], str]]) -> str:
    """A page with these parts told anew and all others as they are."""

    def told(found: re.Match[str]) -> str:
        part = parts.get(found[2])
        return found[0] if part is None else f"{found[1]}{part(card, found[3].split())}\n\n{found[4]}"

    return PART.sub(told, page)


def facts(card: ModelCard, _: list[str]) -> str:
    """Where it belongs and where it comes from."""
    place = registry.MODELS[card.name].removeprefix("regard.models.")
    said = [f"Task `{card.task}`, shape {card.shape}", f"[{place}.py](../../src/regard/models/{place}.py)"]
    paper = card.paper and f" Paper: {citation(card.paper)}, *{card.paper.rpartition(_year(card.paper) + ', ')[2]}*."
    return ", ".join(said) + "." + (paper or "")


def _year(paper: str) -> str:
    found = re.search(r"\b\d{4}\b", paper)
    assert found is not None
    return found[0]


def costs(card: ModelCard, _: list[str]) -> str:
    """Sizes as columns: parameters and the state of one text; then the operations of a token."""
    known = registry.entry(card.name)
    by_size = sizes(known)
    rows = [("parameters", *(human(one.parameters) for one in by_size.values()))]
    kept = [one.state for one in by_size.values() if one.state]
    if kept:
        rows.append(_states(kept))
    return "\n\n".join([table(("", *by_size), rows), _operations(known)])


def _states(kept: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Bytes that are carried; a plus where they grow in some sizes and not in others."""
    growing, told = {one["grows"] for one in kept}, f", after {kept[0]['length']:,} tokens"
    grown = {(True,): f"{told} and growing", (False, True): f"{told} (+: growing)"}.get(tuple(sorted(growing)), "")
    plus = "+" if len(growing) > 1 else ""
    return f"state of one text{grown}", *(human(one["bytes"], "B") + plus * one["grows"] for one in kept)


def _operations(known: registry.Entry) -> str:
    found = operations(known)
    if 0 in found.training:
        return f"Operations of the size `small`: {human(found.training[0])} a forecast in training."
    each = ", ".join(f"{human(count)} at {length}" for length, count in found.training.items())
    step = "" if found.step is None else f"; {human(found.step)} for one token more, its logits included"
    return f"Operations of the size `small`: a token in training, by the length of the text, {each}{step}."


def settings(card: ModelCard, names: list[str]) -> str:
    """The settings that a page names, with what they mean, their defaults and what sizes change."""
    known, meaning = registry.entry(card.name), tomllib.loads((FOLDER / "settings.toml").read_text(encoding="utf-8"))
    defaults, own = known.parameters_of_preset(), meaning.get(card.name, {})
    rows = []
    for name in names:
        sizes = [_value(known.sizes[size].get(name, defaults[name])) for size in known.sizes]
        rows.append((f"`model.{name}`", _value(defaults[name]), _changes(sizes), own.get(name) or meaning["all"][name]))
    rates = [_value(rate) for rate in rates_by_size(known).values()] if "lr" in known.training else []
    for name, value in known.training.items():
        sizes = rates if name == "lr" else []
        rows.append((f"`train.{name}`", _value(value), _changes(sizes), meaning["train"][name]))
    return table(("setting", "default", "tiny, small, base, paper", ""), rows)


def _changes(sizes: Sequence[str]) -> str:
    return ", ".join(sizes) if len(set(sizes)) > 1 else ""


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_value, value))}]"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"


def laws(card: ModelCard, _: list[str]) -> str:
    """The laws that apply and their verdicts; then those that do not, by the fact they follow from."""
    results = check_model(card.name)
    applies = [one for one in results if one.held is not None]
    rows = [(one.law, _meaning(one.law), "holds" if one.held else "**broken**") for one in applies]
    parts = [table(("law", "what it says", "verdict"), rows), *_others(results), *_mixers(card.name)]
    return folded(f"{_verdict(applies)}, {len(results) - len(applies)} do not apply", "\n\n".join(parts))


def _verdict(applies: Sequence[LawResult]) -> str:
    broken = sum(one.held is False for one in applies)
    return f"All {len(applies)} laws that apply hold" if not broken else f"{broken} of {len(applies)} laws are broken"


def folded(summary: str, text: str) -> str:
    """A part that opens when it is asked for, on GitHub and on the site."""
    return f'<details markdown="1">\n<summary>{summary}</summary>\n\n{text}\n\n</details>'


def _meaning(law: str) -> str:
    """The first sentence of what the law says of itself, with Markdown's code."""
    first = (LAWS[law].__doc__ or "").strip().replace("\n", " ")
    return re.sub(r"\s+", " ", re.split(r"(?<=[.])\s|; ", first)[0]).rstrip(".")


def _others(results: Iterable[LawResult]) -> list[str]:
    without = sorted((one.detail, one.law) for one in results if one.held is None)
    said = [f"{', '.join(law for _, law in group)} ({why})" for why, group in groupby(without, key=lambda one: one[0])]
    return [f"Do not apply: {'; '.join(said)}."] if said else []


def _mixers(name: str) -> list[str]:
    """Its mixers, which are checked by themselves too."""
    known = registry.entry(name)
    kinds = dict.fromkeys(_kinds(known.config(known.counted_with("tiny", 257), "tiny")))
    examples = registry.mixer_examples()
    named = [f"`regard check {kind}`" for kind in kinds if kind in examples and kind != name]
    return [f"Its mixers are checked by themselves, also with extreme inputs: {', '.join(named)}."] if named else []


def _kinds(part: Any) -> Iterable[str]:
    """The kinds of mixers in a config, outer ones first."""
    if isinstance(part, MixerConfig):
        yield part.kind
    inside = vars(part).values() if isinstance(part, Config) else part if isinstance(part, tuple) else ()
    for one in inside:
        yield from _kinds(one)


FACTS: dict[str, Callable[[ModelCard, list[str]], str]] = {"facts": facts, "cost": costs, "settings": settings}


def own_models() -> list[ModelCard]:
    """Those of the package, whatever else was registered."""
    return [card for card in models() if card.name in registry.MODELS]


def index(page: str) -> str:
    """The index with the table of all models told anew, by task in the order of the road."""
    found = own_models()
    tasks = dict.fromkeys(card.task for card in found)
    parts = []
    for task in tasks:
        rows = [
            (f"[`{card.name}`]({card.name}.md)", card.summary, _small(card), citation(card.paper))
            for card in found
            if card.task == task
        ]
        parts.append(f"### {task}\n\n" + table(("model", "what it is", "small", "paper"), rows))
    told = "\n\n".join(parts)
    return PART.sub(lambda match: f"{match[1]}{told}\n\n{match[4]}", page)


def _small(card: ModelCard) -> str:
    return human(card.parameters["small"]) if card.parameters["small"] else "fitted"


def table(head: Sequence[str], rows: Iterable[Sequence[str | None]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join((cell or '').replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def draw(name: str) -> None:
    """Fit a model to its world and keep the picture of a view."""
    data, text, view, panels = DRAWN[name]
    # Pictures say where their run lies: as on the page, below the current folder.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run = regard.train(name, data, out=f"runs/{name}", quiet=True, seed=0, budget=STEPS.get(name))
        found = run.explain(text, view)
    part = replace(found, panels=found.panels[:panels])
    (FOLDER / f"{name}.svg").write_text(part.to_svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
