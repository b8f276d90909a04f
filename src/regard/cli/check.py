"""`regard check`: the laws on a mixer, a model or a class of one's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import CommonOnDevice, command
from regard.cli.screen import Screen
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.laws import LawResult


def add_to(app: typer.Typer) -> None:
    command(app, "check")(check)


def check(
    common: CommonOnDevice,
    names: Annotated[
        list[str] | None, typer.Argument(help="Mixers, models or module:Class.", metavar="NAME", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every mixer and every model.")] = False,
) -> None:
    """Run the laws on mixers and models.

    Parallel and step forms agree, no position sees the future, padding and packing change nothing, and so on.
    """
    if everything == bool(names):
        raise UsageError("say what to check: NAME, module:Class or --all (see regard list)")
    from regard import laws
    from regard.core.device import device_named

    device = str(device_named(common.device or "cpu"))
    groups = laws.check_all(device) if everything else (laws.check(name, device) for name in names or [])
    results = list(itertools.chain.from_iterable(_noted(common.screen, groups) if everything else groups))
    _show(common.screen, results, in_brief=everything or common.quiet)
    if any(result.held is False for result in results):
        raise typer.Exit(1)


def _noted(screen: Screen, groups: Iterable[list[LawResult]]) -> Iterable[list[LawResult]]:
    """Everything takes minutes: tell on stderr what is done."""
    for group in groups:
        broken = sum(result.held is False for result in group)
        screen.note(f"{group[0].subject}: {f'{broken} did not hold' if broken else 'held'}")
        yield group


def _show(screen: Screen, results: list[LawResult], *, in_brief: bool) -> None:
    subjects = _by_subject(results)
    if in_brief:
        columns = ("subject", "held#", "broken#", "do not apply#", "max error#", "rms#", "tolerance#")
        screen.table(columns, [_line(name, part) for name, part in subjects.items()])
    else:
        for name, part in subjects.items():
            columns = ("law", "held", "max error#", "rms#", "tolerance#", "note")
            screen.table(columns, map(_row, part), title=name)
            screen.line()
    broken = [result for result in results if result.held is False]
    for result in broken:
        screen.line(f"{result.subject}: {result.law} did not hold: {result.detail}")
    held = sum(result.held is True for result in results)
    without = len(results) - held - len(broken)
    seconds = sum(result.seconds for result in results)
    screen.line(f"{held} held, {len(broken)} did not, {without} do not apply, in {seconds:.1f} s")
    screen.object({"held": not broken, "checked": held + len(broken), "results": [vars(result) for result in results]})


def _by_subject(results: list[LawResult]) -> dict[str, list[LawResult]]:
    """Results in groups. A mixer and a model may share a name; the model comes second."""
    found: dict[str, list[LawResult]] = {}
    for name, part in itertools.groupby(results, key=lambda result: result.subject):
        found[name if name not in found else f"{name} (model)"] = list(part)
    return found


def _row(result: LawResult) -> tuple[str, ...]:
    if result.held is None:
        return (result.law, "-", "", "", "", result.detail)
    numbers = [f"{value:.1e}" for value in (result.error, result.rms, result.tolerance)]
    return (result.law, "yes" if result.held else "NO", *numbers, "")


def _line(name: str, results: list[LawResult]) -> tuple[object, ...]:
    counts = [sum(result.held is outcome for result in results) for outcome in (True, False, None)]
    # Errors of the law of precision are counted in roundings and have a table of their own.
    exact = [result for result in results if result.tolerance == min(other.tolerance for other in results)]
    worst = [max(getattr(result, key) for result in exact) for key in ("error", "rms", "tolerance")]
    return (name, *counts, *(f"{value:.1e}" for value in worst))
