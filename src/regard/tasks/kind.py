"""Which task data is for: every registered task is asked whether it recognises the data by its name and first lines."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from regard.data.choices import OPEN, Choices
from regard.data.kind import Head
from regard.data.worlds import PREFIX, from_spec
from regard.errors import UsageError
from regard.tasks import tasks


def kind_of(data: str, other: str | None = None, choices: Choices = OPEN, known: Collection[str] = ()) -> str:
    """The name of the task. Only the head of a file is read; one that is not what its name says is refused.

    choices, known: how it is to be read and which columns are asked for, as far as somebody said.

    A second file, named by itself or after a comma, is for the task of two files, and a world says what it is.
    Otherwise the tasks are asked by their turn, and at last the one that takes anything.
    """
    if other is not None or _is_two_files(data):
        return of_two_files()
    if data.startswith(PREFIX):
        return from_spec(data).task
    every, head = tasks(), Head(data, choices, known)
    head.refuse_disagreement()
    for task in sorted(every, key=lambda task: (task.takes_anything, task.turn)):
        if task.recognises(head):
            return task.name
    names = [task.name for task in every if task.same_data_as is None]
    raise UsageError(f"{head.unclear}; or say another task with --task: {', '.join(names)}")


def has_columns(data: str, choices: Choices = OPEN) -> bool:
    """Whether data is a table, whose columns somebody may name."""
    return not (data.startswith(PREFIX) or _is_two_files(data)) and Head(data, choices).has_columns


def _is_two_files(data: str) -> bool:
    return "," in data and not Path(data).exists()


def of_two_files() -> str:
    """The task whose data may lie in two files."""
    return next(task.name for task in tasks() if task.two_files)
