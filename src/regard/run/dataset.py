"""The data that settings name, read and split once; several runs can share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.data import settings as data_settings
from regard.tasks import saved_name, task_named
from regard.tasks.pretrained import read_start, require_start

if TYPE_CHECKING:
    from torch import nn

    from regard.run.settings import Settings
    from regard.tasks.dataset import Dataset
    from regard.tasks.task import Task
    from regard.training.problem import TrainingProblem


def task_of(settings: Settings) -> Task[Any]:
    """The task of a run as its settings have it."""
    from regard.training.settings import from_dict

    training, data = from_dict(settings.section("train")), data_settings.from_dict(settings.section("data"))
    task = task_named(saved_name({"data": settings.section("data")})).with_settings(training, data)
    if training.start is None:
        return task
    require_start(task)
    return task.starting_from(read_start(training.start))


def load_dataset(settings: Settings) -> Dataset[Any]:
    """What a run with these settings reads."""
    return task_of(settings).ready(data_settings.from_dict(settings.section("data")), settings["train.seed"])


def work(settings: Settings, data: Dataset[Any], model: nn.Module) -> TrainingProblem:
    """What the training loop needs to train `model` on what `load_dataset` gave for these settings."""
    from regard.training.settings import from_dict

    training = from_dict(settings.section("train"))
    return task_of(settings).training(data, model, training, data_settings.from_dict(settings.section("data")))
