"""Plan: from what a person said to the job that is trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from regard.errors import UsageError
from regard.run.like import settings_like
from regard.run.paths import free_path, latest_path, refuse_another, saved_settings
from regard.run.recipe import read_recipe
from regard.run.settings import DEFAULT_MODEL, LORA, START, Layer, Origin, Settings, resolve, section_of
from regard.run.task_choice import with_task

CONFIG = "config.json"


@dataclass(frozen=True)
class Job:
    """A run to be made.

    resume    "no", "last" (from the newest checkpoint) or "auto" (from the newest undamaged one).
    changed   training settings that the caller named on a resume, which may therefore differ.
    is_large  train it although the estimate says that it does not fit.
    samples   what the model writes is shown at evaluations; where nobody looks, its time is better spent.
    """

    settings: Settings
    out: Path
    resume: str = "no"
    changed: Collection[str] = ()
    is_large: bool = False
    samples: bool = True

    @property
    def title(self) -> str:
        """What is trained on what, for the display."""
        start = self.settings[START]
        model = f"{self.settings['model.name']} {self.settings['model.size'] if start is None else f'from {start}'}"
        return f"{model} on {self.settings['data.path']} -> {self.out}"


def plan(
    *,
    recipe: str | Path | None,
    changes: Layer,
    out: str | Path | None,
    resume: str = "no",
    is_large: bool = False,
    like: str | Path | None = None,
    keywords: Mapping[str, Any] = MappingProxyType({}),
) -> Job:
    """The job that a recipe and changes to it describe, on top of the defaults or of the run that goes on.

    like      a run whose settings are those of the new one where nothing else is said.
    keywords  further changes, named by their key alone: which section one is of depends on the model.
    """
    given = (read_recipe(recipe) if recipe is not None else {}) | changes
    if like is not None:
        if resume != "no":
            raise UsageError("--like begins a new run and --resume goes on with one: leave one of them out")
        given = settings_like(Path(like).expanduser(), given) | given
    keywords = dict(keywords)
    # What the task is told by is needed before it is known which model, and so which settings, there are.
    telling = {f"data.{key}": keywords.pop(key, None) for key in ("task", "target", "number", "labels")}
    telling |= {START: keywords.pop("start", None), LORA: keywords.pop("lora", None)}
    given |= {key: Origin(value, "argument") for key, value in telling.items() if value is not None}
    name = _name(given)
    default = free_path if resume == "no" else latest_path
    path = default(name) if out is None else Path(out).expanduser()
    goes_on = resume == "last" or (resume == "auto" and (path / CONFIG).exists())
    saved = saved_settings(path) if goes_on else {}
    if goes_on:
        refuse_another(path, saved, given)
    else:
        given = with_task(given)
    model = str((saved | given).get("model.name", Origin(DEFAULT_MODEL, "default")).value)
    found = {section_of(key, model): Origin(value, "argument") for key, value in keywords.items()}
    given |= {key: origin for key, origin in found.items() if origin.value is not None}
    changed = [key.removeprefix("train.") for key in given if key.startswith("train.")]
    return Job(resolve(saved, given), path, resume, changed, is_large)


def _name(given: Layer) -> str:
    """What a run folder is called when nobody says: as the model, or as the one that the task takes."""
    if "model.name" in given:
        return str(given["model.name"].value)
    return str(with_task(given)["model.name"].value)
