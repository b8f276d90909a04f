"""Vectors of texts: of every token, and of a whole text pooled into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Float
from torch import Tensor

from regard.core.model import Embeds
from regard.errors import UsageError, nearest
from regard.layers.pooling import PoolingConfig
from regard.run.inputs import inputs_of
from regard.tasks.processor import Ids
from regard.tasks.verbs import Encodes

if TYPE_CHECKING:
    from regard.run.run import Run

Pooled = Literal["mean", "last", "first", "max"]


def encode(run: Run, text: Any) -> Float[Tensor, "T D"]:
    """The vectors of the tokens of one text."""
    task = _encoder(run)
    (found,) = task.encoded(run.model, run.processor, [_text(run, run.task.given(text, "encode: "))])
    return found.vectors[0, : int(found.lengths[0])]


def embed(run: Run, texts: Any, pooling: Pooled | None) -> np.ndarray:
    """(n, D): a vector for each text. pooling: None for that of the model, where it has one, else the mean.

    texts  those in a list may be the ids of their tokens (`Ids`).
    """
    given = _given(run, texts)
    if pooling is None and isinstance(run.model, Embeds):
        found = run.task.answers(run.model, run.processor, given)
        return np.array([answer.details["vector"] for answer in found], np.float32)
    pooling = pooling or "mean"
    if pooling not in get_args(Pooled):
        raise UsageError(f"pooling: {pooling!r} is not a choice{nearest(str(pooling), get_args(Pooled))}")
    task, inputs = _encoder(run), [_text(run, one) for one in given]
    pooled: np.ndarray | None = None
    for found in task.encoded(run.model, run.processor, inputs):
        empty = found.rows[(found.lengths == 0).cpu().numpy()]
        if len(empty):
            raise UsageError(f"embed, input {int(empty.min()) + 1}: an empty text has no vectors; leave it out")
        pool = PoolingConfig(found.vectors.shape[-1], pooling).build()
        some = pool(found.vectors.float(), found.lengths).cpu().numpy()
        pooled = np.empty((len(inputs), some.shape[1]), np.float32) if pooled is None else pooled
        pooled[found.rows] = some
    assert pooled is not None  # of no inputs `inputs_of` gives none
    return pooled


def _given(run: Run, texts: Any) -> list[Any]:
    """Every input as the run's task takes it. Ids are taken as they are where the task reads texts whole."""
    if not (isinstance(texts, list) and any(isinstance(one, Ids) for one in texts)):
        return inputs_of(run, texts, "embed")
    if not run.task.takes_ids:
        raise UsageError(f"a run of the task {run.task.name} takes no tokens by their ids: give texts")
    return [one if isinstance(one, Ids) else run.task.given(one, "embed: ") for one in texts]


def _text(run: Run, one: Any) -> Any:
    """An input that is an example as the text that a person would type."""
    is_example = run.task.example is not None and isinstance(one, run.task.example)
    return run.task.typed(one) if is_example else one


def _encoder(run: Run) -> Encodes:
    """The run's task as one that has vectors; refused where it, or the model, has none."""
    if not isinstance(run.task, Encodes):
        raise UsageError(f"a run of the task {run.task.name} has no vectors for each token of a text")
    if run.fitted:
        raise UsageError(f"{run.path}: {run.config['model']['name']} is fitted at once and has no vectors to encode")
    return run.task
