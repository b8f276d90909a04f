"""The end of a run of a task: its scores, a few answers, and what to do next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from regard.cli.card import longer
from regard.cli.screen import Screen
from regard.table import human, span, visible

if TYPE_CHECKING:
    from regard.task_run import TaskRun
    from regard.training.display import Result

JUDGED_EXAMPLES = 1000


def show_task_card(screen: Screen, run: TaskRun, result: Result) -> None:
    """Print the card, or the numbers alone for a program."""
    facts = measured(run, result)
    screen.object(facts | {"next": next_commands(run)})
    if screen.quiet:
        screen.line(str(run.path))
        return
    for line in card_lines(run, result, facts):
        screen.line(line)


def measured(run: TaskRun, result: Result) -> dict[str, Any]:
    """What the run came to, in plain keys."""
    assert run.material is not None
    report = run.evaluate(limit=JUDGED_EXAMPLES)
    return {
        "run": str(run.path),
        "task": run.task.name,
        "model": run.config["model"]["name"],
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "step": result.step,
        "tokens": result.tokens,
        "seconds": round(result.seconds, 3),
        "reason": result.reason,
        "train_loss": result.train_loss,
        "valid_loss": result.best_loss,
        "best_step": result.best_step,
        "scores": dict(report.scores),
        "best_possible": dict(run.material.best),
        "sample": run.task.sample(run.model, run.material),
    }


def card_lines(run: TaskRun, result: Result, facts: dict[str, Any]) -> list[str]:
    """The card for people."""
    learnt = f"{human(facts['parameters'])} parameters, {result.step:,} steps, {human(result.tokens)} {run.task.unit}"
    lines = [f"{run.path}: {facts['model']} for {run.task.name}, {learnt}, {span(result.seconds)}"]
    if result.reason == "patience":
        lines.append("  ended early: the held-out part no longer improved")
    if result.best_loss is not None:
        lines.append(f"  held-out loss {result.best_loss:.4f} at step {result.best_step:,}")
    scores = {name: value for name, value in facts["scores"].items() if isinstance(value, float)}
    lines.append("  " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items()))
    if facts["best_possible"]:
        best = ", ".join(f"{name} {value:.4g}" for name, value in facts["best_possible"].items())
        lines.append(f"  the best possible: {best}")
    lines += [f"  | {line}" for line in visible(facts["sample"]).split("\n") if line.strip()]
    return [*lines, "Next:", *(f"  {command}" for command in next_commands(run))]


def next_commands(run: TaskRun) -> list[str]:
    """Commands to copy."""
    where = shlex.quote(str(run.path))
    assert run.material is not None
    return [
        run.task.command(where, run.material.examples[0]),
        f"regard evaluate {where}",
        f"regard show {where}",
        f"regard train --resume --out {where} --budget {longer(run.config['train']['budget'])}",
    ]
