"""`regard bench`: speed beside other packages, as ratios measured in one run, and beside what the machine could do."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.options import CommonOnDevice, command
from regard.cli.screen import Screen
from regard.cli.serve import Precision
from regard.errors import UsageError
from regard.terminal.table import finite, human

if TYPE_CHECKING:
    import torch

    from regard.bench import Measured
    from regard.bench.race import Row


def add_to(app: typer.Typer) -> None:
    command(app, "bench")(bench)


@dataclass(frozen=True)
class ServerLoad:
    """Of `regard bench serve RUN`."""

    rates: Annotated[
        str, typer.Option(help="serve: requests a second, with commas; 0 for a closed loop.", metavar="N,...")
    ] = "0"
    concurrent: Annotated[int, typer.Option(help="serve: clients of the closed loop.", min=1)] = 16
    requests: Annotated[int, typer.Option(help="serve: requests at each rate.", min=1)] = 64
    prompt: Annotated[int, typer.Option(help="serve: words of a prompt.", min=1)] = 64
    tokens: Annotated[int, typer.Option(help="serve: tokens of an answer.", min=1)] = 64
    slots: Annotated[int | None, typer.Option(help="serve: texts that step together.", min=1)] = None
    threads: Annotated[int | None, typer.Option(help="serve: of the engine.", min=1)] = None
    precision: Annotated[Precision | None, typer.Option(help="serve: as of regard serve.")] = None


def bench(
    common: CommonOnDevice,
    load: ServerLoad,
    names: Annotated[
        list[str] | None, typer.Argument(help="Benchmarks; all when none is named.", metavar="NAME", show_default=False)
    ] = None,
    data: Annotated[str | None, typer.Option(help="A text to count, for ngram.", metavar="FILE")] = None,
    repeats: Annotated[int, typer.Option(help="Times each is measured; the median counts.", min=1)] = 5,
    out: Annotated[Path | None, typer.Option(help="The object of --json as a file.", metavar="FILE")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="What was reached beside the machine's limits, as SVG.", metavar="FILE")
    ] = None,
) -> None:
    """Measure speed beside other packages and beside what this machine could do.

    Peers are measured where they are installed; a ratio above 1 is faster than the peer. `limit` is what the machine's
    measured speed and bandwidth allow for the operations and bytes that the work needs at least, `share` how much of it
    was reached. `regard bench growth` measures instead how the cost of each model grows with length, width and batch,
    `regard bench serve RUN` what clients of a server wait for.
    """
    from regard.core.device import device_named

    for path in (out, picture):
        if path is not None and not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}; make it first")
    if names and names[0] == "serve":
        _serve(common, names[1:], load, out)
        return
    device = device_named(common.device or "auto")
    if names == ["growth"]:
        _growth(common, repeats, device, out, picture)
        return
    if "growth" in (names or ()):
        raise UsageError("growth is measured alone: regard bench growth")
    _races(common, names or [], repeats, device, data, out, picture)


def _races(
    common: CommonOnDevice,
    names: list[str],
    repeats: int,
    device: torch.device,
    data: str | None,
    out: Path | None,
    picture: Path | None,
) -> None:
    """Each benchmark beside its peers."""
    from regard import bench as benchmarks
    from regard.bench.race import missing

    screen = common.screen
    if missing():
        screen.note(f"not installed, so left out: {', '.join(missing())}")
    found = benchmarks.run(
        names,
        repeats,
        device,
        data,
        lambda row: screen.note(f"{row.name}: {row.note or _number(row.ratio) or 'measured'}"),
    )
    _show(screen, found)
    _save(screen, found.to_dict(), out)
    if picture is not None:
        from regard.bench.roofline import roofline

        _write(screen, picture, roofline(found.machine, found.rows))
    if any(row.note for row in found.rows):
        raise typer.Exit(1)


def _show(screen: Screen, found: Measured) -> None:
    """The table. Names have a column that folds, so that the numbers stand side by side on a narrow terminal."""
    screen.object(found.to_dict())
    columns = ("#", "name", "ours#", "peer#", "unit", "ratio#", "aim#", "ops#", "bytes#", "limit#", "share#", "note")
    rows = [(str(number), *_cells(row)) for number, row in enumerate(found.rows, 1)]
    used = [place for place in range(len(columns)) if columns[place] != "note" or any(row[place] for row in rows)]
    title = "" if found.machine is None else found.machine.told
    screen.table([columns[place] for place in used], [[row[place] for place in used] for row in rows], title=title)


def _cells(row: Row) -> tuple[str, ...]:
    limit = None if row.ours is None or not row.share else row.ours / row.share
    counts = ("" if count is None else human(count) for count in (row.operations, row.bytes))
    share = "" if row.share is None else f"{row.share:.0%}" if row.share >= 0.1 else f"{row.share:.1%}"
    numbers = map(_number, (row.ours, row.peer))
    return row.name, *numbers, row.unit, _number(row.ratio), _number(row.aim), *counts, _number(limit), share, row.note


def _growth(common: CommonOnDevice, repeats: int, device: torch.device, out: Path | None, picture: Path | None) -> None:
    """The powers with which the cost of each model grows."""
    from regard.bench import growth
    from regard.core.registry import names

    found: list[growth.Growth] = []
    for one in growth.growth([name for name in names() if growth.layered(name)], repeats, device):
        found.append(one)
        common.screen.note(
            f"{one.model}, {one.axis} up to {one.sizes[-1]:,}: seconds ~ {one.axis}^{one.time_power:.2f}"
        )
    told = {"rows": [asdict(one) for one in found]}
    common.screen.object(told)
    by_model = {one.model: {o.axis: o for o in found if o.model == one.model} for one in found}
    common.screen.table(
        ("model", *(f"{what} ~ {axis}^#" for axis in growth.SIZES for what in ("s", "bytes"))),
        [
            (name, *(f"{power:.2f}" for axis in growth.SIZES for power in (of[axis].time_power, of[axis].memory_power)))
            for name, of in by_model.items()
        ],
    )
    _save(common.screen, told, out)
    if picture is not None:
        _write(common.screen, picture, growth.picture(found))


def _serve(common: CommonOnDevice, runs: list[str], load: ServerLoad, out: Path | None) -> None:
    """How long clients wait at each rate, with regard's server and where it can be started with a peer's."""
    from regard.bench.load import COLUMNS, Load
    from regard.bench.serving import Served, measure
    from regard.cli.serve import require_extra
    from regard.core.device import device_named

    require_extra()
    if len(runs) != 1:
        raise UsageError("name one run: regard bench serve RUN")
    try:
        rates = [float(rate) for rate in load.rates.split(",")]
    except ValueError:
        raise UsageError(f"--rates: expected numbers with commas, found {load.rates!r}") from None
    if not all(0 <= rate < 1e6 for rate in rates):
        raise UsageError(f"--rates: expected numbers from 0 on, found {load.rates!r}")
    loads = [Load(rate, load.concurrent, load.requests, load.prompt, load.tokens) for rate in rates]
    screen = common.screen
    chosen = device_named(common.device or "auto")
    served = Served(str(chosen), load.threads, load.slots, load.precision and load.precision.value)
    found = measure(runs[0], loads, served, lambda one: screen.note(" ".join(one.cells())))
    told = {"rows": [asdict(one) for one in found]}
    screen.object(finite(told))
    screen.table(COLUMNS, [one.cells() for one in found])
    _save(screen, told, out)


def _save(screen: Screen, told: dict[str, Any], out: Path | None) -> None:
    """The object of --json as a file."""
    if out is not None:
        _write(screen, out, json.dumps(finite(told), ensure_ascii=False, indent=1) + "\n")


def _write(screen: Screen, path: Path, text: str) -> None:
    from regard.storage.disk import write_for_person

    write_for_person(path, [text.encode()])
    screen.note(f"wrote {path}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
