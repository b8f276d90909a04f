"""The index of built-in parts: what lists and `show` say of them, kept beside the package so that torch stays away.

Importing every part to ask it for its first line, and building every model to count it, takes seconds. `index.json` has
the answers; `python -m regard.cli.index` writes it, and a test holds that it says what the parts say. It is used for
built-in parts alone: where a package from outside announces parts, or one is not in it, the parts are asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from regard.core.plugin import is_announced
from regard.core.registry import MODELS
from regard.tasks import BUILT_IN, task_named

FILE = Path(__file__).with_name("index.json")


@dataclass(frozen=True)
class TaskFacts:
    """What is said of a task where nothing is asked of it."""

    name: str
    metric: str
    lower_is_better: bool
    unit: str
    data_example: str
    typed_example: str


@cache
def built_in() -> dict[str, Any] | None:
    """What the index says; None where there is none, or one of other models and tasks.

    listed  the sections of `regard list`. models: what `show NAME` says of each. tasks: `TaskFacts`.
    """
    try:
        found = json.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if list(found["models"]) == [*MODELS] and list(found["tasks"]) == [*BUILT_IN] else None


def listed() -> dict[str, Any] | None:
    """All that there is, by section; None where parts from outside belong to it."""
    found = built_in()
    return None if found is None or is_announced() else found["listed"]


def model_facts(name: str) -> dict[str, Any] | None:
    """What `show` says of a built-in model; None of another."""
    found = built_in()
    return None if found is None else found["models"].get(name)


def task_facts(name: str) -> TaskFacts:
    """What is said of a task; one that is not registered is refused."""
    found = built_in()
    told = None if found is None else found["tasks"].get(name)
    return facts_of(task_named(name)) if told is None else TaskFacts(**told)


def facts_of(task: Any) -> TaskFacts:
    """The same, asked of the task itself."""
    return TaskFacts(**{key: getattr(task, key) for key in TaskFacts.__dataclass_fields__})
