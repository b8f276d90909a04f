"""Answers of a run to what a person gives it: one a line, in the order of the inputs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from regard.cli.screen import Screen
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.task_run import TaskRun


def answer_all(screen: Screen, run: TaskRun, text: str | None, options: dict[str, Any]) -> None:
    """Print an answer to every input in `text`."""
    if not text:
        raise UsageError(f"{run.path}: there is nothing to answer; give a text, or pipe one in")
    inputs = run.task.inputs(text)
    answers = run.answers(inputs, **changed(options))
    screen.object({"answers": [answer.to_dict() for answer in answers]})
    for answer in answers:
        screen.line(answer.text)


def changed(options: dict[str, Any]) -> dict[str, Any]:
    """The options that somebody has set: a task has defaults of its own."""
    from regard.texts import TextOptions

    defaults = {field.name: field.default for field in dataclasses.fields(TextOptions)}
    return {name: value for name, value in options.items() if value != defaults[name]}
