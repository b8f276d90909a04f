"""`regard list`: what there is."""

from __future__ import annotations

from dataclasses import asdict

import typer

from regard.cli.options import Common, command
from regard.terminal.table import human

PLURALS = {"mixer": "mixers", "world": "worlds", "look": "looks", "study": "studies"}
WHAT = {"look": "what it shows", "study": "what is claimed"}


def add_to(app: typer.Typer) -> None:
    command(app, "list")(list_everything)


def list_everything(common: Common) -> None:
    """List models, tasks, mixers, worlds, looks and studies."""
    from regard.explain.registry import looks
    from regard.run import catalogue
    from regard.studies.registry import names, study

    screen = common.screen
    models, tasks = catalogue.models(), catalogue.tasks()
    parts = {
        "mixer": catalogue.mixers(),
        "world": catalogue.worlds(),
        "look": [catalogue.PartCard(look.name, look.about) for look in looks()],
        "study": [catalogue.PartCard(name, study(name).claim) for name in names()],
    }
    cards = {PLURALS[part]: [asdict(card) for card in found] for part, found in parts.items()}
    first = {"models": [asdict(card) for card in models], "tasks": [asdict(card) for card in tasks]}
    screen.object(first | cards)
    sizes = list(dict.fromkeys(size for card in models for size in card.parameters))
    rows = [
        (
            card.name,
            card.task,
            card.shape,
            *(human(card.parameters[s]) if card.parameters.get(s) else "" for s in sizes),
            card.summary,
            catalogue.citation(card.paper),
        )
        for card in models
    ]
    columns = ("model", "task", "shape", *(f"{size}#" for size in sizes), "what it is", "paper")
    screen.table(columns, rows, title="Models (parameters by size, over bytes; paper: over the words that it tells)")
    screen.line()
    rows = [(card.name, card.shape, card.metric, card.model, card.summary) for card in tasks]
    screen.table(("task", "shape", "judged by", "model", "what it is"), rows, title="Tasks")
    for part, found in parts.items():
        screen.line()
        rows = [(card.name, card.summary) for card in found]
        screen.table((part, WHAT.get(part, "what it is")), rows, title=PLURALS[part].capitalize())
    screen.hint(
        "regard show NAME tells the settings of a model; regard train world:NAME trains on a world; regard explain RUN "
        "--view LOOK looks inside a run; regard reproduce STUDY runs a study."
    )
