"""The model of a run that goes on: the one that it has, whatever a preset says by now.

What a setting is where nobody says it may change from one regard to the next, and a preset may learn a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.run.ensemble import PARTS
from regard.run.paths import saved_settings
from regard.run.settings import START, resolve
from regard.run.start import model_config
from regard.training.run_folder import CONFIG, read_config
from regard.training.saved_model import saved_model

if TYPE_CHECKING:
    from regard.core.config import Config
    from regard.run.plan import Job
    from regard.tasks.dataset import Dataset

SHAPING, WHERE = ("model.", "data."), ("data.path", "data.valid")  # what lies there is known by its hash


def config_of(job: Job, dataset: Dataset[Any]) -> Config:
    """The model that a job trains; of an ensemble that of its parts."""
    folder = job.out if job.settings["train.ensemble"] == 1 else job.out / PARTS / "0"
    is_there = all((one / CONFIG).exists() for one in (job.out, folder))
    if job.resume != "no" and is_there and _is_the_same(job, dataset):
        return saved_model(folder, read_config(folder)).config
    return model_config(job.settings, dataset.spec)  # what is another one is refused with what differs


def _is_the_same(job: Job, dataset: Dataset[Any]) -> bool:
    """Whether the data is what it was, and nothing is said of it and of the model that the run does not say itself."""
    told, layer = read_config(job.out)["data"], saved_settings(job.out)
    if (told.get("hash"), told.get("tokenizer")) != (dataset.hash, dataset.processor.hash):
        return False
    saved = resolve(layer).table
    return all(
        one == saved.get(key) or (key in layer and one.value == saved[key].value)
        for key, one in job.settings.table.items()
        if key == START or (key.startswith(SHAPING) and key not in WHERE)
    )
