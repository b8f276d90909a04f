"""`regard compare`: which model fits the data."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import CommonOnDevice, WorkerFlags, command
from regard.errors import RegardError, Stopped, UsageError

if TYPE_CHECKING:
    from regard.run.settings import Layer
    from regard.studies.comparison import Comparison


@dataclass(frozen=True)
class CompareFlags:
    """What a comparison may be told."""

    models: Annotated[
        str | None,
        typer.Option(
            help="Which, joined by commas, also folders of runs; settings after ?: lstm?n_layers=3.", metavar="A,B"
        ),
    ] = None
    budget: Annotated[str | None, typer.Option(help="Of each model: 1m, 3Mtokens, 1e15flops.", metavar="AMOUNT")] = None
    seeds: Annotated[int | None, typer.Option(help="Trainings of each model at its best rate.", metavar="N")] = None
    size: Annotated[str | None, typer.Option(help="tiny, small, base or paper.", metavar="NAME")] = None
    parameters: Annotated[int | None, typer.Option(help="The common count, instead of the size's.", metavar="N")] = None
    task: Annotated[str | None, typer.Option(help="Instead of telling it from the data.", metavar="NAME")] = None
    target: Annotated[str | None, typer.Option(help="Other side of pairs, column of a series.", metavar="X")] = None
    valid: Annotated[str | None, typer.Option(help="hash:0.1, tail:0.1 or a file.", metavar="RULE")] = None
    recipe: Annotated[str | None, typer.Option(help="Settings: a TOML file, or a name.", metavar="FILE|NAME")] = None
    out: Annotated[str | None, typer.Option(help="Where runs and report go.", metavar="FOLDER")] = None
    sets: Annotated[
        list[str], typer.Option("--set", help="section.key=value for every model. Repeatable.", metavar="KEY=VALUE")
    ] = field(default_factory=list)
    track: Annotated[
        list[str],
        typer.Option(help="Of each training: tensorboard, wandb or mlflow. Repeatable.", metavar="NAME[:K=V,..]"),
    ] = field(default_factory=list)
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table for a README.")] = False
    folds: Annotated[
        int, typer.Option(help="Of examples: each of K parts is held out in turn, for small data.", metavar="K")
    ] = 1
    scaling: Annotated[bool, typer.Option("--scaling", help="Each model at four sizes, with a fitted curve.")] = False
    force: Annotated[
        bool,
        typer.Option("--force", help="Begin anew: removes the runs and reports of the comparison in FOLDER first."),
    ] = False

    def __post_init__(self) -> None:
        if self.parameters is not None and self.parameters < 1:
            raise UsageError(f"--parameters: at least 1, found {self.parameters}")


def add_to(app: typer.Typer) -> None:
    command(app, "compare")(compare)


def compare(
    common: CommonOnDevice,
    flags: CompareFlags,
    where: WorkerFlags,
    data: Annotated[
        str | None, typer.Argument(help="A file, a folder or world:NAME. [default: world:witness]", metavar="DATA")
    ] = None,
) -> None:
    """Train several models on the same data under the same budget, and rank them.

    Each gets the same time, tokens or operations, finds its learning rate within them, and is tested once. When a model
    fails the others go on, the report stands, and the exit code is that of the first that failed.
    """
    from regard.run.settings import read_assignments
    from regard.studies.board import board_for
    from regard.studies.compare import compare as race
    from regard.studies.report import as_dict, as_markdown

    found = race(
        None if flags.models is None else [name for name in flags.models.split(",") if name.strip()],
        data,
        budget=flags.budget,
        seeds=flags.seeds,
        size=flags.size,
        out=flags.out,
        recipe=flags.recipe,
        force=flags.force,
        parameters=flags.parameters,
        scaling=flags.scaling,
        folds=flags.folds,
        workers=where.workers,
        ray=where.ray,
        # A table for a README is for a file: what people see meanwhile goes beside it.
        board=board_for(sys.stderr if flags.markdown else common.screen.people, quiet=common.quiet),
        layer=read_assignments(flags.sets) | _typed(common, flags),
    )
    common.screen.object(as_dict(found))
    if flags.markdown:
        common.screen.lines(as_markdown(found).rstrip())
    elif not common.json:
        found.show(brief=common.quiet)
    if found.stopped:
        raise Stopped(f"stopped; {found.out}/report.html shows what is done, and the same command goes on")
    if found.failed:
        raise Incomplete(found)


def _typed(common: CommonOnDevice, flags: CompareFlags) -> Layer:
    """The settings that have a flag of their own."""
    from regard.run.settings import Origin

    named = {
        "data.task": (flags.task, "task"),
        "data.target": (flags.target, "target"),
        "data.valid": (flags.valid, "valid"),
        "train.track": (" ".join(flags.track) or None, "track"),
        "train.device": (common.device, "device"),
    }
    return {key: Origin(value, f"flag --{flag}") for key, (value, flag) in named.items() if value is not None}


class Incomplete(RegardError):
    """Some models failed: the last line says which and why, and the exit code is that of the first of them."""

    def __init__(self, found: Comparison) -> None:
        told = "; ".join(f"{row.label}: {row.failed}" for row in found.failed)
        where = f"the others are in {found.out}/report.html" if found.order else f"see {found.out}/report.html"
        super().__init__(f"{len(found.failed)} of {len(found.rows)} models failed ({told}); {where}")
        self.exit_code = found.failed[0].code
