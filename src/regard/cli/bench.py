"""`regard bench`: speed beside other packages, as ratios measured in one run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import CommonOnDevice, command
from regard.errors import UsageError


def add_to(app: typer.Typer) -> None:
    command(app, "bench")(bench)


def bench(
    common: CommonOnDevice,
    names: Annotated[
        list[str] | None, typer.Argument(help="Benchmarks; all when none is named.", metavar="NAME", show_default=False)
    ] = None,
    data: Annotated[str | None, typer.Option(help="A text to count, for ngram.", metavar="FILE")] = None,
    repeats: Annotated[int, typer.Option(help="Times each is measured; the median counts.", min=1)] = 5,
    picture: Annotated[Path | None, typer.Option(help="A picture of growth, as SVG.", metavar="FILE")] = None,
) -> None:
    """Measure speed beside other packages.

    Peers are measured where they are installed; a ratio above 1 is faster than the peer. `regard bench growth` measures
    instead how the cost of each model grows with length, width and batch.
    """
    from regard import bench as benchmarks

    if names == ["growth"]:
        _growth(common, repeats, picture)
        return
    if picture is not None or common.device is not None:
        raise UsageError("--picture and --device are of growth: regard bench growth --picture FILE")
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


def _growth(common: CommonOnDevice, repeats: int, picture: Path | None) -> None:
    """The powers with which the cost of each model grows."""
    from regard.bench import growth
    from regard.core.device import device_named
    from regard.core.registry import names
    from regard.storage.disk import write_for_person

    found: list[growth.Growth] = []
    for one in growth.growth(
        [name for name in names() if growth.layered(name)], repeats, device_named(common.device or "auto")
    ):
        found.append(one)
        common.screen.note(
            f"{one.model}, {one.axis} up to {one.sizes[-1]:,}: seconds ~ {one.axis}^{one.time_power:.2f}"
        )
    common.screen.object({"rows": [asdict(one) for one in found]})
    by_model = {one.model: {o.axis: o for o in found if o.model == one.model} for one in found}
    common.screen.table(
        ("model", *(f"{what} ~ {axis}^#" for axis in growth.SIZES for what in ("s", "bytes"))),
        [
            (name, *(f"{power:.2f}" for axis in growth.SIZES for power in (of[axis].time_power, of[axis].memory_power)))
            for name, of in by_model.items()
        ],
    )
    if picture is not None:
        write_for_person(picture, [growth.picture(found).encode()])
        common.screen.note(f"wrote {picture}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
