"""Answers of a run to what a person gives it: one a line, in the order of the inputs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from regard.cli.screen import Screen
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.run.run import Run


# Flags that are absent unless somebody gave them.
OWN = ("temperature", "max_tokens")


def answer_all(screen: Screen, run: Run, text: str | None, options: dict[str, Any]) -> None:
    """Print an answer to every input in `text`."""
    if not text:
        raise UsageError(f"{run.path}: there is nothing to answer; give a text, or pipe one in")
    given = changed(options)
    unused = run.task.unused(given)
    if unused:
        flags = ", ".join(f"--{'n' if name == 'n_best' else name.replace('_', '-')}" for name in unused)
        raise UsageError(f"{run.path}: {flags} means nothing to a run of the task {run.task.name}; leave it out")
    answers = run.answers(run.task.inputs(text), **given)
    screen.object({"answers": [answer.to_dict() for answer in answers]})
    for answer in answers:
        for line in (answer.text, *(other["text"] for other in answer.details.get("others", ()))):
            screen.written(line)


def changed(options: dict[str, Any]) -> dict[str, Any]:
    """The options that somebody has set: a task has defaults of its own, of `temperature` and `max_tokens` too."""
    from regard.decoding.text import TextOptions

    defaults = {field.name: field.default for field in dataclasses.fields(TextOptions)}
    return {name: value for name, value in options.items() if name in OWN or value != defaults[name]}
