"""`regard bench`: speed beside other packages, as ratios measured in one run."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.options import Common, command


def add_to(app: typer.Typer) -> None:
    command(app, "bench")(bench)


def bench(
    common: Common,
    names: Annotated[
        list[str] | None, typer.Argument(help="Benchmarks; all when none is named.", metavar="NAME", show_default=False)
    ] = None,
    data: Annotated[str | None, typer.Option(help="A text to count, for ngram.", metavar="FILE")] = None,
    repeats: Annotated[int, typer.Option(help="Times each is measured; the median counts.", min=1)] = 5,
) -> None:
    """Measure speed beside other packages.

    Peers are measured where they are installed; a ratio above 1 is faster than the peer.
    """
    from regard import bench as benchmarks

    screen = common.screen
    rows = []
    for row in benchmarks.run(names or [], repeats, data):
        rows.append(row)
        screen.note(f"{row.name}: {row.note or _number(row.ratio) or 'measured'}")
    screen.object({"repeats": repeats, "rows": [vars(row) for row in rows]})
    screen.table(
        ("name", "ours#", "peer#", "ratio#", "aim#", "unit", "note"),
        [(row.name, *map(_number, (row.ours, row.peer, row.ratio, row.aim)), row.unit, row.note) for row in rows],
    )
    if any(row.note for row in rows):
        raise typer.Exit(1)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
