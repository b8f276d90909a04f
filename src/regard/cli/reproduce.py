"""`regard reproduce`: the claims of lectures and papers as experiments with a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import CommonOnDevice, WorkerFlags, command
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.studies.claims.study import Study

OUT = Path("runs/reproduce")


def add_to(app: typer.Typer) -> None:
    command(app, "reproduce")(reproduce)


def reproduce(
    common: CommonOnDevice,
    where: WorkerFlags,
    ids: Annotated[
        list[str] | None, typer.Argument(help="Studies. [default: all]", metavar="ID", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The form that takes under a minute, of one seed.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Show the claims and run nothing.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Write one page of all verdicts so far.")] = False,
    on: Annotated[
        str | None, typer.Option(help="The form of a study on a run with weights of others.", metavar="RUN")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Labelled text, of a form that needs some.", metavar="FILE")] = None,
    force: Annotated[bool, typer.Option("--force", help="Run again what is finished.")] = False,
    out: Annotated[Path, typer.Option(help="Where results go.", metavar="FOLDER")] = OUT,
) -> None:
    """Run the claims of lectures and papers as experiments, each with a rule and a verdict.

    Holds, does not hold, or not settled at this size: no rule is bent until it passes.
    """
    from regard.studies import reproduce as studies
    from regard.studies.reproduce import verdicts_page

    on_gpu = (common.device or "cpu").startswith("cuda")
    if quick and on_gpu:
        raise UsageError("--quick is the form for a CPU; leave --device out")
    chosen = _chosen(ids or [], on, data)
    if listing:
        rows = [(one.id, studies.number_of(one.id), one.claim, one.source) for one in chosen]
        keys = ("study", "number", "claim", "source")
        told = [dict(zip(keys, row, strict=True)) | {"rule": one.rule} for row, one in zip(rows, chosen, strict=True)]
        common.screen.object({"studies": told})
        common.screen.table(keys, rows)
        return
    found = []
    if not report or ids:
        scale = "quick" if quick else "gpu" if on_gpu else "cpu"
        device, workers = "cuda" if on_gpu else "cpu", where.side_by_side(common.screen)
        for one in studies.reproduce(chosen, scale, device=device, out=out, force=force, workers=workers):
            found.append(one)
            common.screen.note(f"{one.study}: {one.outcome} ({one.seconds:.0f} s)")
    if report:
        found = studies.every_kept(out)
        common.screen.note(f"wrote {studies.write_page(verdicts_page(found), out)}")
    common.screen.object({"studies": [one.to_dict() for one in found]})
    rows = [(one.study, one.outcome, f"{one.seconds:.0f}", one.reason) for one in found]
    common.screen.table(("study", "verdict", "seconds#", "why"), rows)
    if any(one.outcome == "failed" for one in found):
        raise typer.Exit(1)


def _chosen(ids: list[str], on: str | None, data: str | None) -> list[Study]:
    """The studies that are named, or all; on a run where one is named."""
    from regard.studies import registry

    if data is not None and on is None:
        raise UsageError("--data is for the form of a study on a run: name one with --on")
    if on is None:
        return [registry.study(name) for name in ids or registry.names()]
    if not ids:
        raise UsageError(f"--on: name the studies, of {', '.join(registry.ON_RUNS)}")
    return [registry.study_on(name, on, data) for name in ids]
