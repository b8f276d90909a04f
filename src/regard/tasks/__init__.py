"""Tasks: what each kind of data is learnt for. Every task is one file, and built-in and outside ones register alike.

    @register_task
    class Ratings(ExampleTask[RatingProcessor]): name = "ratings" ...

A registered task trains, resumes, answers, evaluates, is compared, explained, shown in the lab and listed. Files of
built-in ones are imported when their name is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from regard.core.plugin import load_entry_points
from regard.errors import UsageError, blamed_on, nearest

if TYPE_CHECKING:
    from regard.tasks.task import Task

T = TypeVar("T", bound="type[Task[Any]]")

# Name to file. The one line of a built-in task.
BUILT_IN = {
    "text": "regard.tasks.text",
    "masked": "regard.tasks.masked",
    "pairs": "regard.tasks.pairs",
    "labelled": "regard.tasks.labelled",
    "tagged": "regard.tasks.tagged",
    "captions": "regard.tasks.captions",
    "series": "regard.tasks.series",
    "regression": "regard.tasks.regression",
    "multilabel": "regard.tasks.multilabel",
}
AUTO = "auto"  # told from the data
TEXT = "text"  # what a run from before there were tasks is for

_registered: dict[str, type[Task[Any]]] = {}


def register_task(task: T) -> T:
    """Add the decorated class under its name. A name may be taken once."""
    name = task.name
    if not name.isidentifier() or name == AUTO:
        raise UsageError(f"{name!r} cannot be the name of a task: it is one word of letters, and not {AUTO}")
    old = _registered.get(name)
    taken = old.__module__ if old else BUILT_IN.get(name, task.__module__)
    if taken != task.__module__:
        raise UsageError(f"the task name {name!r} is taken by {taken}")
    _registered[name] = task
    return task


def is_registered(name: str) -> bool:
    """Whether the file of a task was imported."""
    return name in _registered


def names() -> list[str]:
    """Every registered task, built-in ones first."""
    load_entry_points("regard.tasks")
    return [*BUILT_IN, *(name for name in _registered if name not in BUILT_IN)]


def task_named(name: str) -> Task[Any]:
    """The task of that name. Nothing but regard's own files and entry points is imported for it."""
    if name not in _registered and name in BUILT_IN:
        importlib.import_module(BUILT_IN[name])
    if name not in _registered:
        known = names()
        if name not in _registered:
            outside = "a task from outside the package is imported first: --import MODULE"
            raise UsageError(f"unknown task {name!r}{nearest(name, known)} ({outside})")
    return _registered[name]()


def tasks() -> list[Task[Any]]:
    """All of them, in the order of their names."""
    return [task_named(name) for name in names()]


def saved_name(config: Mapping[str, Any]) -> str:
    """The name of the task that the config of a run tells; one from before there were tasks tells none."""
    name = config.get("data", {}).get("task", TEXT)
    return TEXT if name == AUTO else name


def saved_task(file: object, config: Mapping[str, Any]) -> Task[Any]:
    """The task of a run, of which `file` has the config; one that is not registered is refused."""
    with blamed_on(f"{file}: data.task"):
        return task_named(saved_name(config))


def shape_of(name: str) -> str:
    """The shape of a task in the taxonomy, such as N-M; of one that is not registered nothing is known."""
    return task_named(name).shape if name in names() else ""
