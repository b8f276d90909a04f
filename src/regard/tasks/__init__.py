"""Tasks: what each kind of data is learnt for. Plain text is `regard.decoding.text`; every other one is a file here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from regard.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.tasks.task import Task

# Name to file, class and the model that is trained when none is named. The one line of a task.
TASKS = {
    "masked": ("regard.tasks.masked", "MaskedText", "bert"),
    "pairs": ("regard.tasks.pairs", "Pairs", "transformer"),
    "labelled": ("regard.tasks.labelled", "LabelledText", "classifier"),
    "tagged": ("regard.tasks.tagged", "TaggedText", "tagger"),
    "captions": ("regard.tasks.captions", "Captions", "captioner"),
    "series": ("regard.tasks.series", "SeriesTask", "forecaster"),
}
SHAPES = {"text": "1-N", "masked": "N-N", "pairs": "N-M", "labelled": "N-1", "tagged": "N-N"} | {
    "captions": "1-N",
    "series": "N-M",
}
TEXT = "text"
DEFAULT_MODEL = "gpt"


def names() -> list[str]:
    """Every task."""
    return [TEXT, *TASKS]


def task_named(name: str) -> Task[Any]:
    """The task of that name."""
    if name not in TASKS:
        raise UsageError(f"unknown task {name!r}{nearest(name, TASKS)}")
    module, cls, _ = TASKS[name]
    return getattr(importlib.import_module(module), cls)()


def default_model(name: str) -> str:
    """The model that is trained when none is named."""
    return TASKS[name][2] if name in TASKS else DEFAULT_MODEL
