"""`regard evaluate`: a run on held-out or other text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from regard.cli.failure import telling
from regard.cli.options import CommonOnDevice, command
from regard.cli.screen import Screen


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
    limit: Annotated[int | None, typer.Option(help="Tokens, or examples, to read at most.", metavar="N", min=1)] = None,
    every: Annotated[
        str | None,
        typer.Option(help="Series: block by block, 28d say, each after learning all before.", metavar="SPAN"),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="int8: scores with weights of 8 bits, and what they change.", metavar="int8")
    ] = None,
) -> None:
    """Measure loss, perplexity and bits, or the scores of the run's own task.

    On a world also the distance to the optimum, and how often a fact was recalled from how far back.
    """
    from regard.run.live import progress_on
    from regard.run.run import load

    screen, notes = common.screen, list[str]()
    with telling(lambda: "nothing was written"):
        loaded = load(run, device=common.device or "auto")
        with progress_on(sys.stderr, f"evaluate {run}", quiet=common.quiet):
            report = loaded.evaluate(data, limit=limit, weights=weights, every=every, tell=notes.append).to_dict()
    if data is None and loaded.is_refit:
        notes.append("the held-out part is told by the run as it was before it learnt that too (train.refit)")
    for note in notes:
        screen.note(note)
    screen.object(report)
    recall, change = report.pop("recall", {}), report.pop("change", {})
    tables = {name: report.pop(name) for name in list(report) if isinstance(report[name], list)}
    columns = ("measure", "value#") + ((f"by {weights}#",) if change else ())
    rows = [(name, _number(value), f"{change[name]:+.4f}" if name in change else "") for name, value in report.items()]
    screen.table(columns, [row[: len(columns)] for row in rows])
    if change:
        # Perplexity where a task has it: it is what is spoken of.
        name = next(name for name in ("perplexity", loaded.task.judged_by(loaded.processor), *change) if name in change)
        screen.line(f"{name} {report[name]:.2f}, {change[name]:+.2f} by {weights}")
    _show_tables(screen, tables)
    if recall:
        screen.line()
        rows = [(distance, f"{share:.1%}") for distance, share in recall.items()]
        screen.table(("distance", "recalled#"), rows, title="Facts recalled, by distance in tokens")


def _show_tables(screen: Screen, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    for name, rows in tables.items():
        if rows:
            screen.line()
            columns = tuple(f"{key}#" if isinstance(value, (int, float)) else key for key, value in rows[0].items())
            cells = [tuple(_number(value) for value in row.values()) for row in rows]
            screen.table(columns, cells, title=name.replace("_", " ").capitalize())


def _number(value: float | str) -> str:
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
