"""`regard evaluate`: a run on held-out or other text."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.options import CommonOnDevice, command


def add_to(app: typer.Typer) -> None:
    command(app, "evaluate")(evaluate)


def evaluate(
    run: Annotated[str, typer.Argument(help="A run folder.", metavar="RUN", show_default=False)],
    common: CommonOnDevice,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A file, a folder, - or world:NAME; the run's own held-out part without it.", metavar="DATA"
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Tokens to read at most.", metavar="N", min=1)] = None,
) -> None:
    """Measure loss, perplexity and bits.

    On a world also the distance to the optimum, and how often a fact was recalled from how far back.
    """
    from regard.run import load

    report = load(run, device=common.device or "auto").evaluate(data, limit=limit).to_dict()
    screen = common.screen
    screen.object(report)
    recall = report.pop("recall", {})
    screen.table(("measure", "value#"), [(name, _number(value)) for name, value in report.items()])
    if recall:
        screen.line()
        rows = [(distance, f"{share:.1%}") for distance, share in recall.items()]
        screen.table(("distance", "recalled#"), rows, title="Facts recalled, by distance in tokens")


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
