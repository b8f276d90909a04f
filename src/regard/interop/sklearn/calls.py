"""What the estimators ask of regard: to train on columns in memory, and answers of a run as arrays."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.core.registry import entry, names
from regard.data.example import Tagged
from regard.data.tabular import held, table_of
from regard.interop.sklearn.kept_run import TEMPORARY, KeptRun, without_folder
from regard.interop.sklearn.refusal import refused
from regard.run.run import Run
from regard.run.train import train
from regard.run.vectors import Pooled
from regard.storage.temporary import temporary_folder
from regard.training.random_streams import generator_states, restore_generators

Columns = Mapping[str, Sequence[Any]]
# Chance is drawn from generators that a process has one of: estimators that are fitted in threads take turns.
_TURN = threading.Lock()


@dataclass(frozen=True)
class Work:
    """A training to be made. settings: further keywords of `regard.train`."""

    model: str
    size: str
    budget: str
    seed: int
    device: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def is_fitted_at_once(model: str) -> bool:
    """Whether a model has no use for examples that are held out while it learns; an encoder under a head has."""
    return model in names() and entry(model).fitted


def task_of(model: str) -> str:
    """The task that a model is for."""
    return entry(model).task


def learnt(work: Work, columns: Columns, judge: Columns | None = None) -> KeptRun:
    """The run of a training that leaves nothing behind: no folder, and no changed generator of chance."""
    with refused(), ExitStack() as stack:
        stack.enter_context(_TURN)
        folder = stack.enter_context(temporary_folder(None, TEMPORARY))
        stack.callback(restore_generators, generator_states())
        told: dict[str, Any] = {"quiet": True, "seed": work.seed, "device": work.device}
        if judge is not None:
            told["valid"] = stack.enter_context(held(table_of(judge), "held-out"))
        if not is_fitted_at_once(work.model):
            told |= {"size": work.size, "budget": work.budget}
        data = stack.enter_context(held(table_of(columns), "X"))
        run = train(work.model, data, out=folder / "run", **told | dict(work.settings))
        for note in run.config.get("fit", {}).get("notes", ()):
            warnings.warn(note, stacklevel=4)
        return KeptRun.of_folder(folder / "run", work.device, without_folder(run))


def probabilities(run: Run, texts: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """The probability of each class, by its name in the run, for each text, (n, C)."""
    with refused():
        if not len(texts):
            return np.zeros((0, len(classes)))
        told, own = run.predict_proba(list(texts)), run.classes
    return told[:, [own.index(name) for name in classes]]


def tags(run: Run, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """A tag for each word of each sentence."""
    with refused():
        asked = [Tagged(tuple(words), ("",) * len(words)) for words in sentences]
        return [list(answer.details["tags"]) for answer in run.answers(asked)]


def vectors(run: Run, texts: Sequence[str], pooling: Pooled) -> np.ndarray:
    """A vector for each text, none of which is blank, (n, D)."""
    with refused():
        return run.embed(list(texts), pooling=pooling)


def quantiles_ahead(run: Run, columns: Columns) -> tuple[np.ndarray, tuple[float, ...]]:
    """Quantiles (n, Q) of the steps after a past, whose rows to come lack the target, and which quantiles they are."""
    with refused(), held(table_of(columns), f"X-{threading.get_ident()}") as data:
        told = run.answers([data])[0].details
    found = {float(name[1:]): values for name, values in told.items() if name[:1] == "q" and name[1:2].isdecimal()}
    return np.array(list(found.values())).T, tuple(found)
