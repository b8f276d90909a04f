"""The end of a run of a task: its scores, a few answers, and what to do next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from regard.cli.card import Card, longer, outcome
from regard.terminal.table import human, span, visible

if TYPE_CHECKING:
    from regard.run.task_run import TaskRun
    from regard.training.display import Result

JUDGED_EXAMPLES = 1000


def task_card(run: TaskRun, result: Result) -> Card:
    """The card of a run of any task but plain text."""
    facts = _measured(run, result)
    return Card(facts, _lines(run, result, facts), _next_commands(run))


def _measured(run: TaskRun, result: Result) -> dict[str, Any]:
    assert run.dataset is not None
    report = run.evaluate(limit=JUDGED_EXAMPLES)
    return outcome(run, result) | {
        "task": run.task.name,
        "scores": dict(report.scores),
        "best_possible": dict(run.dataset.best),
        "sample": run.task.sample(run.model, run.dataset),
    }


def _lines(run: TaskRun, result: Result, facts: dict[str, Any]) -> list[str]:
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
    return lines + [f"  | {line}" for line in visible(facts["sample"]).split("\n") if line.strip()]


def _next_commands(run: TaskRun) -> list[str]:
    where = shlex.quote(str(run.path))
    assert run.dataset is not None
    return [
        run.task.command(where, run.dataset.examples[0]),
        f"regard evaluate {where}",
        f"regard show {where}",
        f"regard train --resume --out {where} --budget {longer(run.config['train']['budget'])}",
    ]
