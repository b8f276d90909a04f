"""Which task a run has, and which model fits it, when a person has said only part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.errors import UsageError
from regard.run.settings import DEFAULT_DATA, Layer, Origin
from regard.tasks import TEXT, default_model

# The name of a language model or of a mixer beside labelled text, tagged text or a series means that encoder under the
# task's own head.
HEADED = {"labelled": "classifier", "tagged": "tagger", "series": "forecaster"}


def with_task(given: Layer) -> Layer:
    """`given` with its task and model told where they were left open; what does not fit together is refused."""
    path = str(_value(given, "data.path", DEFAULT_DATA))
    model = _value(given, "model.name", None)
    task = _value(given, "data.task", "auto")
    found = _found(path, _value(given, "data.target", None), model, task)
    layer = dict(given)
    if task == "auto":
        layer["data.task"] = Origin(found, "told from the data")
    if model is None:
        layer["model.name"] = Origin(default_model(found), f"task {found}")
        return layer
    return layer | _fitting(str(model), found, path)


def _found(path: str, target: Any, model: Any, task: str) -> str:
    """The task: as said, else as the data looks, else, of plain text, as the model wants it."""
    if task != "auto":
        return task
    from regard.core.registry import entry
    from regard.data.kind import kind_of

    # Of a series the target is a column.
    other = target if target is not None and Path(str(target)).expanduser().exists() else None
    kind = "pairs" if "," in path else kind_of(path, other)
    if kind == TEXT and target is not None:
        # Plain text has no other side: a file that is not there is missed where pairs are read.
        return "pairs"
    # Text of any kind can be read as plain text, which is what a model of masked words wants too.
    if kind != TEXT or model is None:
        return kind
    return "masked" if entry(str(model)).task == "masked" else kind


def _fitting(model: str, task: str, path: str) -> Layer:
    """The model as the task uses it."""
    from regard.core.registry import entry
    from regard.models.encoder_stack import FAMILIES, encoders

    if model in _models() and entry(model).task == task:
        return {}
    if task in HEADED and (model in FAMILIES or model in encoders()):
        said = f"model {model} as an encoder"
        return {"model.name": Origin(HEADED[task], said), "model.encoder": Origin(model, said)}
    own = entry(model).task
    fitting = [other for other in _models() if entry(other).task == task] or [default_model(task)]
    raise UsageError(
        f"{model} is for {own}, and {path} holds {task}; choose --model {' or '.join(fitting)}, or say --task {own}"
    )


def _models() -> list[str]:
    from regard.core.registry import names as model_names

    return model_names()


def _value(given: Layer, key: str, default: Any) -> Any:
    return given[key].value if key in given else default
