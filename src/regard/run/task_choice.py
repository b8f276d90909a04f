"""Which task a run has, and which model fits it, when a person has said only part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.errors import UsageError, nearest
from regard.run.settings import DEFAULT_DATA, Layer, Origin
from regard.tasks import AUTO, names, task_named


def with_task(given: Layer) -> Layer:
    """`given` with its task and model told where they were left open; what does not fit together is refused."""
    layer = dict(given)
    task = _known(_value(given, "data.task", AUTO))
    if "data.path" not in given and task != AUTO and task_named(task).world is not None:
        layer["data.path"] = Origin(task_named(task).world, f"task {task}")
    path = str(_value(layer, "data.path", DEFAULT_DATA))
    model = _value(given, "model.name", None)
    found = _found(path, _value(given, "data.target", None), model, task)
    if task == AUTO:
        layer["data.task"] = Origin(found, "told from the data")
    if model is None:
        layer["model.name"] = Origin(task_named(found).model, f"task {found}")
        return layer
    return layer | _fitting(str(model), found, path)


def _found(path: str, target: Any, model: Any, task: str) -> str:
    """The task: as said, else as the data looks, else, of plain text, as the model wants it."""
    if task != AUTO:
        return task
    from regard.core.registry import entry
    from regard.tasks.kind import kind_of, of_two_files

    # Of a series the target is a column.
    other = target if target is not None and Path(str(target)).expanduser().exists() else None
    kind = kind_of(path, other)
    if target is not None and task_named(kind).takes_anything:
        # Plain text has no other side: a file that is not there is missed where pairs are read.
        return of_two_files()
    if model not in _models():
        return kind
    wanted = entry(str(model)).task
    return wanted if task_named(wanted).same_data_as == kind else kind


def _known(task: Any) -> str:
    """The name of a task that is registered, or auto; the nearest one is named for any other."""
    if task in (AUTO, *names()):
        return task
    raise UsageError(f"data.task: {task!r} is not a choice{nearest(str(task), (AUTO, *names()))}")


def _fitting(model: str, task: str, path: str) -> Layer:
    """The model as the task uses it."""
    from regard.core.registry import entry
    from regard.models.encoder_stack import FAMILIES, encoders

    if model in _models() and entry(model).task == task:
        return {}
    headed = task_named(task).headed
    if headed is not None and (model in FAMILIES or model in encoders()):
        said = f"model {model} as an encoder"
        return {"model.name": Origin(headed, said), "model.encoder": Origin(model, said)}
    own = entry(model).task
    fitting = [other for other in _models() if entry(other).task == task] or [task_named(task).model]
    raise UsageError(
        f"{model} is for {own}, and {path} holds {task}; choose --model {' or '.join(fitting)}, or say --task {own}"
    )


def _models() -> list[str]:
    from regard.core.registry import names as model_names

    return model_names()


def _value(given: Layer, key: str, default: Any) -> Any:
    return given[key].value if key in given else default
