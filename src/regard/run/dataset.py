"""The data that settings name, read and split once; several runs can share it.

Batches that a small text can fill: what nobody has set is made smaller until it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from regard.core.fitted import Begins, FitSettings, Tell
from regard.data import settings as data_settings
from regard.errors import RegardError, TooSmall
from regard.run.settings import COMPARISON, TUNING, Origin, Settings
from regard.run.start_vectors import start_vectors
from regard.run.training_file import refuse_training_file
from regard.tasks import saved_name, task_named
from regard.tasks.pretrained import read_start
from regard.tasks.verbs import Fits
from regard.tasks.vocabulary import require_tokenizer_free

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from regard.tasks.dataset import Dataset
    from regard.tasks.pretrained import Start
    from regard.tasks.processor import Processor
    from regard.tasks.task import Task
    from regard.training.display import Display
    from regard.training.problem import TrainingProblem

ROWS, LENGTH = "train.batch_size", "train.length"
SMALL = "a small text"
# What is given up last: four rows at a time, of sixteen tokens.
FEW_ROWS, SHORT = 4, 16
T = TypeVar("T")


def task_of(settings: Settings) -> Task[Any]:
    """The task of a run as its settings have it."""
    from regard.training.settings import from_dict

    training, data = from_dict(settings.section("train")), data_settings.from_dict(settings.section("data"))
    task = task_named(saved_name({"data": settings.section("data")})).with_settings(training, data)
    task.refuse_untrained(training)
    start = start_of(settings)
    return task if start is None or start.processor is not None else task.starting_from(start)


def start_of(settings: Settings) -> Start | None:
    """What a run with these settings begins with; None where all that it learns begins at random."""
    path = settings["train.start"]
    return None if path is None else read_start(str(path), task_named(saved_name({"data": settings.section("data")})))


def load_dataset(settings: Settings, processor: Processor | None = None) -> Dataset[Any]:
    """What a run with these settings reads, in the terms of `processor`, or of the run that it starts from."""
    data = data_settings.from_dict(settings.section("data"))
    refuse_training_file(data)
    start = start_of(settings)
    if start is not None and start.processor is not None:
        require_tokenizer_free(data)
        processor = processor or start.processor
    return task_of(settings).ready(data, settings["train.seed"], processor)


def tell(settings: Settings, data: Dataset[Any], display: Display) -> None:
    """Say what was chosen, and what was understood of the data, before anything is learnt from it."""
    for line in (*settings.notes, *(data.account.lines() if data.account else ()), *data.notes):
        display.note(line)


def saved_processor(settings: Settings, folder: Path) -> Processor | None:
    """The processor of a run that goes on, as whoever wrote it made it; None where there is no whole one."""
    from regard.training import run_folder

    try:
        return task_of(settings).load_processor(lambda name: run_folder.verified(folder, name))
    except RegardError:
        return None


def work(settings: Settings, data: Dataset[Any], model: nn.Module) -> TrainingProblem:
    """What the training loop needs to train `model` on what `load_dataset` gave for these settings."""
    from regard.training.settings import from_dict

    training = from_dict(settings.section("train"))
    return task_of(settings).training(data, model, training, data_settings.from_dict(settings.section("data")))


def begin(model: nn.Module, settings: Settings, dataset: Dataset[Any], tell: Tell) -> None:
    """Solve for what a model has that is solved for before its first step, and give words the vectors they begin with,
    where there is such a part."""
    from regard.training.settings import from_dict

    task = task_of(settings)
    if isinstance(model, Begins) and isinstance(task, Fits):
        training, data = from_dict(settings.section("train")), data_settings.from_dict(settings.section("data"))
        problem = task.fitting(dataset, model, training, data)
        how = FitSettings(training.seed, training.memory_bytes, class_weights=problem.class_weights)
        model.begin(problem.data, how, tell)
    if settings["train.vectors"] is not None:
        start_vectors(model, dataset.processor, settings["train.vectors"], tell)


def fitted(settings: Settings, make: Callable[[Settings], T]) -> tuple[Settings, T]:
    """What `make` gives for the settings, or for smaller batches where it raises `TooSmall`, and with which it did."""
    try:
        return settings, make(settings)
    except TooSmall:
        for less in smaller(settings):
            with suppress(TooSmall):
                return less, make(less)
        raise


def smaller(settings: Settings) -> Iterator[Settings]:
    """The same settings with ever smaller batches, as far as nobody has set their sizes."""
    rows, length = settings[ROWS], settings[LENGTH]
    may = {key: _is_automatic(settings.table[key].place) for key in (ROWS, LENGTH)}
    while (rows > 1 and may[ROWS]) or (length > 1 and may[LENGTH]):
        if may[ROWS] and rows > (FEW_ROWS if may[LENGTH] and length > SHORT else 1):
            rows //= 2
        elif may[LENGTH] and length > 1:
            length //= 2
        changes = {ROWS: Origin(rows, SMALL), LENGTH: Origin(length, SMALL)}
        yield Settings({**settings.table, **{key: value for key, value in changes.items() if may[key]}})


def told_smaller(usual: Settings, less: Settings) -> str:
    """What was made smaller, for a person."""
    sizes = [f"{one[ROWS]} rows of {one[LENGTH]} tokens" for one in (less, usual)]
    return f"the text is small: batches of {sizes[0]} instead of {sizes[1]} (train.batch_size, train.length)"


def _is_automatic(place: str) -> bool:
    """Whether a value is a default, of the package, of a model, of a comparison or of learning on."""
    return place in ("default", COMPARISON, TUNING) or place.startswith("model ")
