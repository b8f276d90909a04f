"""The data that settings name, read and split once; several runs can share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.data import settings as data_settings
from regard.tasks import TEXT, task_named
from regard.tasks.pretrained import read_start

if TYPE_CHECKING:
    from torch import nn

    from regard.data.corpus import Corpus
    from regard.run.settings import Settings
    from regard.tasks.task import Dataset, Task
    from regard.training.problem import TrainingProblem

TEXT_SETTINGS = frozenset({"path", "task", "valid", "test", "tokens", "vocab_size", "documents", "cache"})


def task_kind(settings: Settings) -> Task[Any] | None:
    """The task of a run as its settings have it; None of plain text."""
    from regard.training.settings import from_dict

    # A run from before there were tasks says nothing of its own.
    if settings["data.task"] in (TEXT, "auto"):
        return None
    training = from_dict(settings.section("train"))
    kind = task_named(settings["data.task"]).with_settings(training)
    return kind if training.start is None else kind.starting_from(read_start(training.start))


def load_dataset(settings: Settings) -> Corpus | Dataset[Any]:
    """What a run with these settings reads."""
    from regard.data.corpus import prepare

    kind, data, seed = task_kind(settings), data_settings.from_dict(settings.section("data")), settings["train.seed"]
    if kind is not None:
        return kind.ready(data, seed)
    data.refuse_unused("text", TEXT_SETTINGS)
    chosen = {name: getattr(data, name) for name in ("tokens", "vocab_size", "valid", "test", "documents", "cache")}
    return prepare(data.path, seed=seed, **chosen)


def work(settings: Settings, data: Any, model: nn.Module) -> TrainingProblem:
    """What the training loop needs to train `model` on what `load_dataset` gave for these settings."""
    from regard.training.problem import language_problem
    from regard.training.settings import from_dict

    kind, training = task_kind(settings), from_dict(settings.section("train"))
    if kind is None:
        return language_problem(data, model, training)
    return kind.training(data, model, training, data_settings.from_dict(settings.section("data")))
