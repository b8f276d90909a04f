"""Outcome: what a training came to, and what to do next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from regard.core.fitted import TOLD
from regard.kernels.operators import fallbacks
from regard.terminal.table import human, span, visible
from regard.training import budget

if TYPE_CHECKING:
    from regard.tasks.task import Task, Trained
    from regard.training.display import Result

JUDGED_EXAMPLES = 1000
SAMPLE = "  | "  # how a line of a sample begins
LATE = 1.5  # a training ends a little after its time, and a short one long after it


@dataclass(frozen=True)
class Outcome:
    """Plain keys for a program, lines for people, commands to copy for both."""

    facts: dict[str, Any]
    lines: list[str]
    next: list[str]

    def with_line(self, line: str, **facts: Any) -> Outcome:
        """The same with further facts, and a line on them before the samples."""
        place = next((n for n, one in enumerate(self.lines) if one.startswith(SAMPLE)), len(self.lines))
        lines = [*self.lines[:place], f"  {line}", *self.lines[place:]]
        return replace(self, facts=self.facts | facts, lines=lines)


def common_facts(run: Trained, result: Result) -> dict[str, Any]:
    """The facts of every outcome. fallbacks: what could not be made fast, and how often its plain form ran instead."""
    choice = dict(result.choice or {})
    return {
        "run": str(run.path),
        "model": run.config["model"]["name"],
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "step": result.step,
        "tokens": result.tokens,
        "seconds": round(result.seconds, 3),
        "reason": result.reason,
        "train_loss": result.train_loss,
        "valid_loss": result.best_loss,
        "best_step": result.best_step,
        "fallbacks": fallbacks() | dict.fromkeys(choice.get("failed", ()), 1),
    } | _of_steps(run, result)


def _of_steps(run: Trained, result: Result) -> dict[str, Any]:
    """How steps were made, at which rate and why at that, and how much of batches was padding, where there were any."""
    padding = {} if result.padding is None else {"padding": round(result.padding, 5)}
    if result.choice is None:
        return padding
    rate = {"lr": run.config["train"]["lr"], "lr_origin": run.config.get("origins", {}).get("train.lr")}
    return padding | rate | {"choice": dict(result.choice)}


def by_scores(task: Task[Any], run: Trained, result: Result) -> Outcome:
    """The scores on held-out examples beside the best possible ones, and a few answers."""
    facts = _measured(task, run.before_refit(), result)
    return Outcome(facts, _lines(task, run, result, facts), _next_commands(task, run, result))


def _measured(task: Task[Any], run: Trained, result: Result) -> dict[str, Any]:
    assert run.dataset is not None
    report = task.evaluate(run.model, run.processor, task.limited(run.held_out("valid"), JUDGED_EXAMPLES))
    return common_facts(run, result) | {
        "task": task.name,
        "scores": dict(report.scores),
        "best_possible": dict(run.dataset.best),
        "sample": task.sample(run.model, run.dataset),
    }


def _lines(task: Task[Any], run: Trained, result: Result, facts: dict[str, Any]) -> list[str]:
    fit = run.config.get("fit")
    steps = f"{human(facts['parameters'])} parameters, {result.step:,} steps"
    learnt = steps if fit is None else fit.get(TOLD, "fitted")
    spent = f"{human(result.tokens)} {task.unit}, {span(result.seconds)}"
    lines = [f"{run.path}: {facts['model']} for {task.name}, {learnt}, {spent}"]
    if result.reason == "patience":
        lines.append("  ended early: the held-out part no longer improved")
    if result.best_loss is not None:
        when = "" if fit is not None else f" at step {result.best_step:,}"
        lines.append(f"  held-out loss {result.best_loss:.4f}{when}")
    scores = {name: value for name, value in facts["scores"].items() if isinstance(value, float)}
    lines.append("  " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items()))
    if facts["best_possible"]:
        best = ", ".join(f"{name} {value:.4g}" for name, value in facts["best_possible"].items())
        lines.append(f"  the best possible: {best}")
    return lines + [f"{SAMPLE}{line}" for line in visible(facts["sample"]).split("\n") if line.strip()]


def _next_commands(task: Task[Any], run: Trained, result: Result) -> list[str]:
    where, example = shlex.quote(str(run.path)), run.held_out("valid")[0]
    typed = "" if task.reads_files else f" {shlex.quote(task.typed(example))}"
    further = (
        f"regard explain {where}{typed}"
        if "fit" in run.config
        else f"regard train --resume --out {where} --budget {longer(run.config['train']['budget'], result)}"
    )
    # Where there is nothing to forecast from, a forecaster is shown by an explanation too.
    return list(
        dict.fromkeys([task.command(where, example), f"regard evaluate {where}", f"regard show {where}", further])
    )


def longer(text: str, result: Result) -> str:
    """A budget with which a run goes on as far again: twice its own, or twice what was spent where that is more."""
    whole = budget.parse(text)
    spent = {"seconds": result.seconds, "steps": result.step, "tokens": result.tokens}.get(whole.kind, 0.0)
    if spent > LATE * whole.amount:
        return whole.told(2 * spent)
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzMGTP ")
    return f"{2 * float(number):g}{text.strip()[len(number) :].strip()}"
