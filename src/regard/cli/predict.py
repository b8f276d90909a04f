"""`regard predict`: what a run says to everything in a file."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.failure import telling
from regard.cli.options import CommonOnDevice, command
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.run.answer_file import Predicted


def add_to(app: typer.Typer) -> None:
    command(app, "predict")(predict)


@dataclass(frozen=True)
class PredictFlags:
    """What is read, and how it is written."""

    out: Annotated[
        str | None,
        typer.Option(
            help=".csv .tsv .jsonl .json .parquet .xlsx, also .gz .zst; standard output without.", metavar="FILE"
        ),
    ] = None
    sets: Annotated[
        list[str],
        typer.Option("--set", help="A setting, such as data.text=review. Repeatable.", metavar="KEY=VALUE"),
    ] = field(default_factory=list)
    limit: Annotated[int | None, typer.Option(help="The first N inputs.", metavar="N", min=1)] = None
    beam: Annotated[
        int | None, typer.Option(help="Of a run that writes: search with a beam of this width.", metavar="W")
    ] = None
    max_tokens: Annotated[int | None, typer.Option(help="Of a run that writes: tokens at most.", metavar="N")] = None
    temperature: Annotated[
        float | None, typer.Option(help="Of a run that writes: draw at this temperature.", metavar="T", min=0.0)
    ] = None
    seed: Annotated[int | None, typer.Option(help="Of what is drawn.", metavar="N")] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with FILE where a call was interrupted.")] = False
    force: Annotated[bool, typer.Option("--force", help="Replace FILE, and what was begun of it.")] = False

    @property
    def options(self) -> dict[str, Any]:
        """How texts are written, as far as somebody said."""
        found = {"beam": self.beam, "max_tokens": self.max_tokens, "temperature": self.temperature, "seed": self.seed}
        return {name: value for name, value in found.items() if value is not None}


def predict(
    run: Annotated[str, typer.Argument(help="A run folder.", metavar="RUN", show_default=False)],
    data: Annotated[
        str,
        typer.Argument(
            help="A table, a text with an input a line, CoNLL, a folder of pictures, or -.",
            metavar="DATA",
            show_default=False,
        ),
    ],
    common: CommonOnDevice,
    flags: PredictFlags,
) -> None:
    """Answer everything in a file, and keep what was there beside the answers.

    A table keeps its columns and gets answer and probability, a caption, or what else the run tells; CoNLL gets a tag a
    word; a series is forecast from its end on. Without --out, --json writes an object a line.
    """
    if flags.seed is not None and flags.temperature is None:
        raise UsageError("--seed is of what is drawn; say --temperature too")
    if flags.out is None and (flags.resume or flags.force):
        raise UsageError("--resume and --force are about a file; name it with --out")
    from regard.run.answer_file import predict_file, predict_stream, settings_with
    from regard.run.live import progress_on
    from regard.run.run import load
    from regard.run.settings import read_assignments
    from regard.terminal.stream import byte_stream

    loaded = load(run, device=common.device or "auto")
    changes = {key: origin.value for key, origin in read_assignments(flags.sets).items()}
    chosen: dict[str, Any] = {"settings": settings_with(loaded, changes), "limit": flags.limit, **flags.options}
    is_shown = flags.out is not None or not sys.stdout.isatty()
    with telling(lambda: _left(flags.out)), progress_on(sys.stderr, data, quiet=common.quiet or not is_shown):
        if flags.out is None:
            done = predict_stream(loaded, data, byte_stream(sys.stdout), as_json=common.json, **chosen)
        else:
            done = predict_file(loaded, data, flags.out, resume=flags.resume, force=flags.force, **chosen)
    for note in done.notes:
        common.screen.note(note)
    if flags.out is not None:
        common.screen.object(done.to_dict())
        common.screen.line(_told(done))


def _told(done: Predicted) -> str:
    before = f", {done.resumed:,} of them before" if done.resumed else ""
    added = f"; added: {', '.join(done.columns)}" if done.columns else ""
    return f"{done.file}: {done.inputs:,} inputs answered{before}{added}"


def _left(out: str | None) -> str:
    """What a stop leaves behind."""
    from regard.storage.partial import ENDING, beside

    if out is None or not beside(Path(out).expanduser(), ENDING).exists():
        return ""
    return "what was answered is kept: go on with --resume"
