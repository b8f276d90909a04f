"""Which task a run has, and which model fits it, when a person has said only part of it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, UsageError, nearest
from regard.run.settings import DEFAULT_DATA, START, Layer, Origin
from regard.tasks import AUTO, names, task_named

if TYPE_CHECKING:
    from regard.data.settings import DataSettings


def with_task(given: Layer) -> Layer:
    """`given` with its task and model told where they were left open; what does not fit together is refused."""
    layer = with_kind(given)
    found, model = str(layer["data.task"].value), _value(given, "model.name", None)
    if START in given:
        layer = _of_start(layer, found, is_told=_value(given, "data.task", AUTO) != AUTO)
        model, found = _value(layer, "model.name", None), str(layer["data.task"].value)
    if model is None:
        layer["model.name"] = Origin(task_named(found).model, f"task {found}")
        return layer
    return layer | _fitting(str(model), found, str(_value(layer, "data.path", DEFAULT_DATA)))


def with_kind(given: Layer) -> Layer:
    """`given` with its task told where it was left open. Unless a model is named torch is not needed for it."""
    layer = dict(given)
    task = _known(_value(given, "data.task", AUTO))
    if "data.path" not in given and task != AUTO and task_named(task).world is not None:
        layer["data.path"] = Origin(task_named(task).world, f"task {task}")
    if task == AUTO:
        path = str(_value(layer, "data.path", DEFAULT_DATA))
        by_columns = _task_of_columns(path, given)
        found = _task_of_data(path, given, _value(given, "model.name", None)) if by_columns is None else by_columns
        layer["data.task"] = Origin(found, "told from the data" if by_columns is None else "told by its columns")
    return layer


def _of_start(layer: Layer, kind: str, *, is_told: bool) -> Layer:
    """The layer with the task, the rate, and the model where it goes on, of a run that starts from another."""
    from regard.core.registry import entry
    from regard.run.start import task_of_start, with_tuning

    path, model = str(layer[START].value), _value(layer, "model.name", None)
    if model in _models() and entry(str(model)).fitted:
        raise UsageError(f"--from: {model} is fitted at once and has no encoder to load; leave it out")
    task, name = task_of_start(path, kind, is_told)
    layer = with_tuning(layer if is_told else layer | {"data.task": Origin(task, layer["data.task"].place)})
    if name is None:
        return layer
    if model not in (None, name):
        raise UsageError(f"--model {model}: the run in {path} is one of {name}, which goes on; leave out --model")
    return layer | {"model.name": Origin(name, f"run {path}")}


def begin_reading(given: Layer) -> None:
    """Begin to read a large table while what learns from it, and with it torch, is imported."""
    from regard.data.tabular import read_ahead

    path = _value(given, "data.path", None)
    if isinstance(path, str):
        with suppress(RegardError):  # what is wrong with it is told where it is read
            read_ahead(path, _said(given).choices)


def _said(given: Layer) -> DataSettings:
    """What was said of how data is to be read and of its columns, each of its type."""
    from regard.data.settings import COLUMNS, from_dict

    said = {key: _value(given, f"data.{key}", None) for key in ("format", "delimiter", "header", "encoding")}
    columns = {key: str(value) for key in COLUMNS if (value := _value(given, f"data.{key}", None)) is not None}
    return from_dict({key: value for key, value in said.items() if value is not None} | columns)


def _task_of_data(path: str, given: Layer, model: Any) -> str:
    """The task: as the data looks, or, of plain text, as the model wants it."""
    from regard.core.registry import entry
    from regard.tasks.kind import kind_named, kind_of, of_two_files

    target = _value(given, "data.target", None)
    # Of a series and of a table of pairs the target is a column.
    other = target if target is not None and Path(str(target)).expanduser().exists() else None
    settings = _said(given)
    kind = kind_of(path, other, settings.choices, settings.named_columns)
    if target is not None and kind_named(kind).takes_anything:
        # Plain text has no other side: a file that is not there is missed where pairs are read.
        return of_two_files()
    if model not in _models():
        return kind
    wanted = entry(str(model)).task
    return wanted if kind_named(wanted).same_data_as == kind else kind


def _task_of_columns(path: str, given: Layer) -> str | None:
    """The only task that has any use for the columns of a table that somebody named; what is named outvotes looks."""
    from regard.data.settings import COLUMNS
    from regard.tasks.kind import has_columns, kinds

    keys = [key for key in COLUMNS if f"data.{key}" in given]
    told = {owners[0].name for key in keys if len(owners := [one for one in kinds() if key in one.used]) == 1}
    return told.pop() if len(told) == 1 and has_columns(path, _said(given).choices) else None


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
