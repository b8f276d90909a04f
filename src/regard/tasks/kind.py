"""Which task data is for: every kind of data is asked whether it recognises some by its name and first lines."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from regard.data.choices import OPEN, Choices
from regard.data.kind import Head
from regard.data.worlds import PREFIX, from_spec
from regard.errors import UsageError
from regard.tasks import is_registered, names, task_named
from regard.tasks.data_kind import DataKind
from regard.tasks.kinds import KINDS


def kind_named(name: str) -> DataKind:
    """What the task of that name reads: the task itself once it is there, else the half of it that needs no torch."""
    return KINDS[name]() if name in KINDS and not is_registered(name) else task_named(name)


def kinds() -> list[DataKind]:
    """Those of all tasks, in the order of their names."""
    return [kind_named(name) for name in names()]


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
    every, head = kinds(), Head(data, choices, known)
    head.refuse_disagreement()
    for kind in sorted(every, key=lambda kind: (kind.takes_anything, kind.turn)):
        if kind.recognises(head):
            return kind.name
    own = [kind.name for kind in every if kind.same_data_as is None]
    raise UsageError(f"{head.unclear}; or say another task with --task: {', '.join(own)}")


def has_columns(data: str, choices: Choices = OPEN) -> bool:
    """Whether data is a table, whose columns somebody may name."""
    return not (data.startswith(PREFIX) or _is_two_files(data)) and Head(data, choices).has_columns


def _is_two_files(data: str) -> bool:
    return "," in data and not Path(data).exists()


def of_two_files() -> str:
    """The task whose data may lie in two files."""
    return next(kind.name for kind in kinds() if kind.two_files)
