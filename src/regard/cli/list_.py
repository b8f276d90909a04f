"""`regard list`: what there is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from regard.cli.options import Common, command
from regard.terminal.table import human

PLURALS = {"mixer": "mixers", "world": "worlds", "recipe": "recipes", "look": "looks", "study": "studies"}
WHAT = {"recipe": "what it is for", "look": "what it shows", "study": "what is claimed"}


def add_to(app: typer.Typer) -> None:
    command(app, "list")(list_everything)


def everything() -> dict[str, Any]:
    """All parts by section, each asked for what it says of itself."""
    from regard.explain.registry import looks
    from regard.run import catalogue
    from regard.run.recipe import shipped
    from regard.studies.registry import names, study

    found = {
        "models": catalogue.models(),
        "tasks": catalogue.tasks(),
        "mixers": catalogue.mixers(),
        "worlds": catalogue.worlds(),
        "recipes": [catalogue.PartCard(name, about) for name, about in shipped().items()],
        "looks": [catalogue.PartCard(look.name, look.about) for look in looks()],
        "studies": [catalogue.PartCard(name, study(name).claim) for name in names()],
    }
    return {section: [asdict(card) for card in cards] for section, cards in found.items()}


def list_everything(common: Common) -> None:
    """List models, tasks, mixers, worlds, recipes, looks and studies.

    In a terminal tables fit its width; in a pipe each part is one whole line, for grep and awk.
    """
    from regard.run.catalogue import citation
    from regard.run.index import listed

    screen = common.screen
    found = listed() or everything()
    screen.object(found)
    sizes = list(dict.fromkeys(size for card in found["models"] for size in card["parameters"]))
    rows = [
        (
            card["name"],
            card["task"],
            card["shape"],
            *(human(card["parameters"][s]) if card["parameters"].get(s) else "" for s in sizes),
            card["summary"],
            citation(card["paper"]),
        )
        for card in found["models"]
    ]
    columns = ("model", "task", "shape", *(f"{size}#" for size in sizes), "what it is", "paper")
    screen.table(columns, rows, title="Models (parameters by size, over bytes; paper: over the words that it tells)")
    screen.line()
    columns = ("name", "shape", "metric", "model", "summary")
    rows = [tuple(card[key] for key in columns) for card in found["tasks"]]
    screen.table(("task", "shape", "judged by", "model", "what it is"), rows, title="Tasks")
    for part, plural in PLURALS.items():
        screen.line()
        rows = [(card["name"], card["summary"]) for card in found[plural]]
        screen.table((part, WHAT.get(part, "what it is")), rows, title=plural.capitalize())
    screen.hint(
        "regard show NAME tells the settings of a model; regard train world:NAME trains on a world; regard train "
        "--recipe RECIPE DATA takes its settings; regard explain RUN --view LOOK looks inside a run; regard reproduce "
        "STUDY runs a study."
    )
