"""`regard train`: a model on text, pairs, labels, tags, pictures, a series or a world."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.failure import telling
from regard.cli.options import Common, CommonWithChance, command
from regard.core.plugin import typed_name
from regard.errors import Stopped, UsageError, nearest

if TYPE_CHECKING:
    from regard.cli.screen import Screen
    from regard.run.plan import Job
    from regard.run.run import Run
    from regard.run.settings import Layer
    from regard.training.display import Result

RESUME = ("last", "auto")


def add_to(app: typer.Typer) -> None:
    command(app, "train")(train)


@dataclass(frozen=True)
class TrainFlags:
    """The settings that have a flag of their own, and the ways to give the others."""

    model: Annotated[str | None, typer.Option(help="Of regard list. [default: gpt]", metavar="NAME")] = None
    size: Annotated[str | None, typer.Option(help="tiny, small, base or paper. [default: small]", metavar="NAME")] = (
        None
    )
    budget: Annotated[
        str | None,
        typer.Option(
            help="90s, 2m, 1h, 500steps, 3Mtokens or 1e15flops; with --resume the total. [default: 2m]",
            metavar="AMOUNT",
        ),
    ] = None
    out: Annotated[str | None, typer.Option(help="The run folder. [default: runs/MODEL]", metavar="RUN")] = None
    task: Annotated[str | None, typer.Option(help="What the data is for; told from it without.", metavar="NAME")] = None
    target: Annotated[
        str | None, typer.Option(help="Of pairs the second file or column, of a series the column.", metavar="NAME")
    ] = None
    start: Annotated[
        str | None, typer.Option("--from", help="A run to begin with: its encoder, or all of it.", metavar="RUN")
    ] = None
    like: Annotated[str | None, typer.Option(help="A run whose settings and data the new one has.", metavar="RUN")] = (
        None
    )
    valid: Annotated[
        str | None, typer.Option(help="What is held out: a path, hash:0.1, tail:0.1 or fold:1/5.", metavar="DATA")
    ] = None
    sets: Annotated[
        list[str],
        typer.Option(
            "--set", help="A setting, such as model.n_layers=2 or train.lr=3e-4. Repeatable.", metavar="KEY=VALUE"
        ),
    ] = field(default_factory=list)
    recipe: Annotated[
        str | None,
        typer.Option(help="Settings from a TOML file (regard new), or by name (regard list).", metavar="FILE|NAME"),
    ] = None
    workers: Annotated[
        int | None, typer.Option(help="Processes that tokenise and count a text. [default: one a core]", metavar="N")
    ] = None
    ray: Annotated[str | None, typer.Option(help="A Ray cluster that does: auto or HOST:PORT.", metavar="ADDRESS")] = (
        None
    )
    memory: Annotated[
        str | None, typer.Option(help="For counting, such as 512M; of each worker. [default: 1G]", metavar="SIZE")
    ] = None
    spill: Annotated[
        str | None, typer.Option(help="Folder for counts that do not fit in memory.", metavar="FOLDER")
    ] = None
    track: Annotated[
        list[str],
        typer.Option(help="tensorboard, wandb or mlflow; options after a colon. Repeatable.", metavar="NAME[:K=V,..]"),
    ] = field(default_factory=list)
    resume: Annotated[
        str | None,
        typer.Option(
            help="Go on with the run; `--resume auto` from an older checkpoint if the newest is damaged.",
            metavar="[auto]",
        ),
    ] = None
    devices: Annotated[
        int | None, typer.Option(help="Processes on this machine that train together.", metavar="N", min=1)
    ] = None
    yes_really: Annotated[bool, typer.Option("--yes-really", help="Train although the estimate says no.")] = False

    def __post_init__(self) -> None:
        if self.resume is not None and self.resume not in RESUME:
            raise UsageError(f"--resume: {self.resume!r} is not a choice{nearest(self.resume, RESUME)}")


Data = Annotated[
    str | None,
    typer.Argument(
        help="A file, a folder, a pattern, -, world:NAME or hf:NAME. [default: world:stories]", metavar="DATA"
    ),
]


def train(
    context: typer.Context,
    common: CommonWithChance,
    flags: TrainFlags,
    data: Data = None,
) -> None:
    """Train a model.

    `regard train my.txt` needs nothing else said.
    """
    from regard.run.many import resumed
    from regard.run.plan import plan
    from regard.run.settings import Origin, read_assignments

    named = {
        "data.path": (data, "argument DATA"),
        "data.task": (flags.task, "flag --task"),
        "data.target": (flags.target, "flag --target"),
        "data.valid": (flags.valid, "flag --valid"),
        "data.workers": (flags.workers, "flag --workers"),
        "data.ray": (flags.ray, "flag --ray"),
        "model.name": (flags.model, "flag --model"),
        "model.size": (flags.size, "flag --size"),
        "train.budget": (flags.budget, "flag --budget"),
        "train.start": (flags.start, "flag --from"),
        "train.memory": (flags.memory, "flag --memory"),
        "train.spill": (flags.spill, "flag --spill"),
        "train.track": (" ".join(flags.track) or None, "flag --track"),
        "train.seed": (common.seed, "flag --seed"),
        "train.device": (common.device, "flag --device"),
    }
    changes = read_assignments(flags.sets)
    changes |= {key: Origin(value, place) for key, (value, place) in named.items() if value is not None}
    job = plan(
        recipe=flags.recipe,
        changes=with_import(changes),
        out=flags.out,
        resume=resumed(flags.resume or "no"),
        is_large=flags.yes_really,
        like=flags.like,
    )
    if not _launched(context.obj, job, flags.devices, common.screen):
        _train(job, common)


def _train(job: Job, common: Common) -> None:
    """Train in this process, which may be one of several that were started for it."""
    from regard.run.live import display_for
    from regard.run.many import together
    from regard.run.train import train_run

    with together(job) as (ranks, job):
        where, is_quiet = shlex.quote(str(job.out)), common.quiet or not ranks.is_first
        display = display_for(common.screen.people, job.title, quiet=is_quiet)
        try:
            with telling(lambda: _left(job.out)):
                run, result = train_run(job, display, ranks=ranks)
        except Stopped as stop:
            raise Stopped(f"{stop}: regard train --resume --out {where}") from None
        if ranks.is_first:
            with telling(lambda: f"the run is whole: regard show {where}"):
                show_card(common.screen, run, result)


def _launched(words: list[str], job: Job, devices: int | None, screen: Screen) -> bool:
    """Whether the command was given to several processes, each of which does its part of it."""
    from regard.run.many import is_fitted, refuse_devices
    from regard.run.train import checked
    from regard.training.parallel.group import is_one_of_many

    if devices is None or devices == 1 or is_one_of_many():
        return False
    if is_fitted(job.settings):
        told = f"{job.settings['model.name']} is counted or solved for by one process; --devices has no effect"
        screen.note(told)
        return False
    from regard.training.parallel.launch import launch

    refuse_devices(job, checked(job), devices)
    code = launch([*words, "--out", str(job.out)], devices)
    if code:
        raise typer.Exit(code)
    return True


def show_card(screen: Screen, run: Run, result: Result) -> None:
    """Print what was learnt and what to do next, the numbers alone for a program, or only where the run is."""
    outcome = run.task.outcome(run, result)
    screen.object(outcome.facts | {"understood": run.config.get("understood", {}), "next": outcome.next})
    if screen.quiet:
        screen.line(outcome.facts["run"])
        return
    for line in [*outcome.lines, "Next:", *(f"  {proposed}" for proposed in outcome.next)]:
        screen.line(line)


def _left(out: Path) -> str:
    """What a training that was ended at once leaves in its folder."""
    from regard.training import checkpoint, run_folder

    if not (out / run_folder.CONFIG).exists():
        return "nothing was written"
    if not checkpoint.steps(out / run_folder.CHECKPOINTS):
        return f"{out} has no checkpoint yet"
    return f"what was saved is in {out}: regard train --resume --out {shlex.quote(str(out))}"


def with_import(changes: Layer) -> Layer:
    """What was typed, with the model by its plain name: the module of `--model module:name` is imported here."""
    name = changes.get("model.name")
    if name is None or not isinstance(name.value, str):
        return changes
    return changes | {"model.name": replace(name, value=typed_name(name.value))}
