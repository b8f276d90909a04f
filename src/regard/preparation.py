"""The data that settings name, read and split once; several runs can share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.data import settings as data_settings
from regard.start import read_start
from regard.tasks import TEXT
from regard.tasks import task as task_of

if TYPE_CHECKING:
    from regard.data.corpus import Corpus
    from regard.recipe import Settings
    from regard.tasks.contract import Material

TEXT_SETTINGS = frozenset({"path", "task", "valid", "test", "tokens", "vocab_size", "documents", "cache"})


def prepared(settings: Settings) -> Corpus | Material[Any]:
    """What a run with these settings reads."""
    from regard.data.corpus import prepare
    from regard.training.settings import from_dict

    data, training = data_settings.from_dict(settings.section("data")), from_dict(settings.section("train"))
    if data.task in (TEXT, "auto"):
        data.refuse_unused("text", TEXT_SETTINGS)
        chosen = {name: getattr(data, name) for name in ("tokens", "vocab_size", "valid", "test", "documents", "cache")}
        return prepare(data.path, seed=training.seed, **chosen)
    task = task_of(data.task).with_settings(training)
    task = task if training.start is None else task.starting_from(read_start(training.start))
    return task.ready(data, training.seed)
