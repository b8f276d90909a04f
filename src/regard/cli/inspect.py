"""`regard inspect`: what data would be taken for, without training anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import typer

from regard.cli.options import Common, command


def add_to(app: typer.Typer) -> None:
    command(app, "inspect")(inspect)


@dataclass(frozen=True)
class InspectFlags:
    """What may be said of data, as to `regard train`."""

    task: Annotated[str | None, typer.Option(help="What the data is for; told from it without.", metavar="NAME")] = None
    target: Annotated[
        str | None, typer.Option(help="Of pairs the second file or column, of a series the column.", metavar="NAME")
    ] = None
    valid: Annotated[
        str | None, typer.Option(help="What is held out: a path, hash:0.1, tail:0.1 or fold:1/5.", metavar="DATA")
    ] = None
    sets: Annotated[
        list[str],
        typer.Option("--set", help="A setting, such as data.text=review. Repeatable.", metavar="KEY=VALUE"),
    ] = field(default_factory=list)
    recipe: Annotated[str | None, typer.Option(help="Settings from a TOML file (regard new).", metavar="FILE")] = None


def inspect(
    data: Annotated[
        str,
        typer.Argument(
            help="A file, a folder, a pattern, -, world:NAME or hf:NAME.", metavar="DATA", show_default=False
        ),
    ],
    common: Common,
    flags: InspectFlags,
) -> None:
    """Show what data is taken for.

    Task, target, columns used and ignored, rows read, dropped and held out, and the first row as it is understood: what
    `regard train` says before it begins. Nothing is trained or written.
    """
    from regard.run.inspect import inspect_data
    from regard.run.settings import Origin, read_assignments

    named = {
        "data.path": (data, "argument DATA"),
        "data.task": (flags.task, "flag --task"),
        "data.target": (flags.target, "flag --target"),
        "data.valid": (flags.valid, "flag --valid"),
    }
    changes = read_assignments(flags.sets)
    changes |= {key: Origin(value, place) for key, (value, place) in named.items() if value is not None}
    account = inspect_data(changes, flags.recipe)
    common.screen.object(account.to_dict())
    for line in account.lines():
        common.screen.line(line)
