"""`regard list`: what there is."""

from __future__ import annotations

from dataclasses import asdict

import typer

from regard.cli.options import Common, command
from regard.terminal.table import human


def add_to(app: typer.Typer) -> None:
    command(app, "list")(list_everything)


def list_everything(common: Common) -> None:
    """List models, tasks, mixers and worlds."""
    from regard.run import catalogue

    screen = common.screen
    models, tasks = catalogue.models(), catalogue.tasks()
    mixers, worlds = catalogue.mixers(), catalogue.worlds()
    screen.object({
        "models": [asdict(card) for card in models],
        "tasks": [asdict(card) for card in tasks],
        "mixers": [asdict(card) for card in mixers],
        "worlds": [asdict(card) for card in worlds],
    })  # fmt: skip
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
    screen.line()
    screen.table(("mixer", "what it is"), [(card.name, card.summary) for card in mixers], title="Mixers")
    screen.line()
    screen.table(("world", "what it is"), [(card.name, card.summary) for card in worlds], title="Worlds")
    screen.hint("regard show NAME tells the settings of a model; regard train world:NAME trains on a world.")
