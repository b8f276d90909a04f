"""The end of a run: what was learnt, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.cli.screen import Screen

if TYPE_CHECKING:
    from regard.run.run import Run
    from regard.training.display import Result


def show_card(screen: Screen, run: Run, result: Result) -> None:
    """Print what a training came to, the numbers alone for a program, or only where the run is."""
    outcome = run.task.outcome(run, result)
    screen.object(outcome.facts | {"next": outcome.next})
    if screen.quiet:
        screen.line(outcome.facts["run"])
        return
    for line in [*outcome.lines, "Next:", *(f"  {command}" for command in outcome.next)]:
        screen.line(line)
