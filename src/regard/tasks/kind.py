"""Which task data is for: every registered task is asked whether it recognises the data by its name and first lines."""

from __future__ import annotations

from regard.data.kind import Head
from regard.data.worlds import PREFIX, from_spec
from regard.errors import UsageError
from regard.tasks import tasks


def kind_of(data: str, other: str | None = None) -> str:
    """The name of the task. Only the head of a file is read.

    A second file, named by itself or after a comma, is for the task of two files, and a world says what it is.
    Otherwise the tasks are asked by their turn, and at last the one that takes anything.
    """
    if other is not None or "," in data:
        return of_two_files()
    if data.startswith(PREFIX):
        return from_spec(data).task
    every, head = tasks(), Head(data)
    for task in sorted(every, key=lambda task: (task.takes_anything, task.turn)):
        if task.recognises(head):
            return task.name
    names = [task.name for task in every if task.same_data_as is None]
    raise UsageError(f"{head.unclear}; or say another task with --task: {', '.join(names)}")


def of_two_files() -> str:
    """The task whose data may lie in two files."""
    return next(task.name for task in tasks() if task.two_files)
