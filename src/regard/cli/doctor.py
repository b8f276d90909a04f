"""`regard doctor`: what this machine can do, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Common, command

BROKEN = 6  # as of every resource that is missing
TOLD = 4  # packages of an extra that are named in the table; --json names all
MARKS = {True: "ok", None: "-", False: "broken"}


def add_to(app: typer.Typer) -> None:
    command(app, "doctor")(doctor)


def doctor(
    common: Common,
    out: Annotated[
        str | None, typer.Option(help="Where runs would be written, instead of runs.", metavar="DIR")
    ] = None,
) -> None:
    """Say what this machine can do, and what is missing.

    Python, torch, threads, memory, disk, GPUs and their number types, Triton, a C compiler, a browser; then every
    extra, what it is for, and the command that installs what it lacks. Nothing is changed. The exit code is 0 unless
    what every command needs is broken.
    """
    from regard.run.doctor import diagnose

    found = diagnose(None if out is None else Path(out))
    screen = common.screen
    screen.object(found.to_dict())
    rows = [(one.name, MARKS[one.is_well], one.value, one.advice) for one in found.findings]
    screen.table(("what", "", "found", "what to do"), rows, title="This machine")
    screen.line()
    rows = [(one.name, one.purpose, _state(one.lacks), one.install * bool(one.lacks)) for one in found.extras]
    screen.table(("extra", "what it is for", "state", "to install"), rows, title="Extras")
    if not found.is_well:
        screen.note("regard: something that every command needs is broken; see the lines marked broken")
        raise typer.Exit(BROKEN)


def _state(lacks: Sequence[str]) -> str:
    more = f"; and {len(lacks) - TOLD} more" if len(lacks) > TOLD else ""
    return "; ".join(lacks[:TOLD]) + more if lacks else "installed"
