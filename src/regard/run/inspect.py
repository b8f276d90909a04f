"""What the data of a run is taken for, told before anything is learnt from it."""

from __future__ import annotations

from pathlib import Path

from regard.data import settings as data_settings
from regard.data.account import Account
from regard.run.recipe import read_recipe
from regard.run.settings import Layer, resolve, resolve_data
from regard.run.task_choice import begin_reading, with_kind, with_task
from regard.run.training_file import refuse_training_file


def inspect_data(changes: Layer, recipe: str | Path | None = None) -> Account:
    """The account of the data that a recipe and changes to it name. Unless a model is named torch is not needed."""
    from regard.tasks import saved_name
    from regard.tasks.kind import kind_named

    given = (read_recipe(recipe) if recipe is not None else {}) | changes
    begin_reading(given)
    has_model = any(key.startswith("model.") for key in given)
    settings = resolve(with_task(given)) if has_model else resolve_data(with_kind(given))
    data = data_settings.from_dict(settings.section("data"))
    refuse_training_file(data)
    kind = kind_named(saved_name({"data": settings.section("data")}))
    return kind.survey(data, settings["train.seed"])
