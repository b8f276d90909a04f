"""Before anything is trained: does every model fit the data and the settings, and the budget one step of it?"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from regard.core.config import Config
from regard.core.data_spec import DataSpec
from regard.errors import DataError, ResourceError, UsageError
from regard.run.dataset import LENGTH, ROWS, SMALL, fitted, told_smaller, work
from regard.run.rate import WIDTH
from regard.run.settings import Layer, Settings, resolve
from regard.run.start import model_config
from regard.studies.entrant import Size
from regard.studies.protocol import HAND, TRIALS, Protocol
from regard.tasks.dataset import Dataset
from regard.training import budget
from regard.training.estimate import on_meta
from regard.training.flops import flops_per_target
from regard.training.frozen import freeze

COPIES = 5  # of the weights: themselves, the best, two moments, a checkpoint
SMALLEST_FREE = 100e6
ENOUGH_SECONDS = 3.0  # a training of more than that has room for a step of anything that fits these machines


def refuse_too_small(
    protocol: Protocol, settings: Mapping[str, Settings], found: Mapping[str, Size], data: Mapping[str, Dataset[Any]]
) -> None:
    """Refuse a budget whose smallest training has no room for one step of some model, naming the smallest that has."""
    whole = budget.parse(protocol.budget)
    smallest = budget.parse(protocol.trial_budget if protocol.searches else protocol.main_budget)
    if smallest.kind == "steps" or (smallest.kind == "seconds" and smallest.amount >= ENOUGH_SECONDS):
        return
    for label, one in settings.items():
        if found[label].fitted:
            continue
        need = _one_step(one, found[label], smallest.kind, data[label])
        if need > smallest.amount:
            unit = {"seconds": "s", "tokens": "tokens", "flops": "flops"}[smallest.kind]
            least = need * whole.amount / smallest.amount
            raise UsageError(
                f"--budget {protocol.budget}: one step of {label} takes {need:.3g}{unit} and its shortest training "
                f"gets {smallest.amount:.3g}{unit}; the smallest budget that works is {least:.3g}{unit}"
            )


def refuse_full_disk(path: Path, found: Mapping[str, Size], protocol: Protocol) -> None:
    """Every training leaves its weights and a checkpoint."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    trainings = protocol.trainings + (TRIALS if protocol.searches else 0)
    need = SMALLEST_FREE + sum(4 * COPIES * size.parameters * trainings for size in found.values())
    if free < need:
        raise ResourceError(
            f"{there} has {free / 1e9:.1f} GB free and the comparison may need {need / 1e9:.1f}; choose another --out"
        )


def fitted_layers(
    layers: Mapping[str, Layer], found: Mapping[str, Size], data: Mapping[str, Dataset[Any]]
) -> tuple[dict[str, Layer], str]:
    """The layers of all models, with smaller batches, the same for all, where a text is small; and what was done."""

    def fitting(asked: Settings) -> dict[str, Layer]:
        sizes = {key: asked.table[key] for key in (ROWS, LENGTH) if asked.table[key].place == SMALL}
        own = {label: {key: sizes[key] for key in sizes if key not in typed(layer)} for label, layer in layers.items()}
        changed = {label: {**layer, **own[label]} for label, layer in layers.items()}
        refuse_misfit({label: resolve(layer) for label, layer in changed.items()}, found, data)
        return changed

    usual = resolve(next((layers[label] for label in layers if not found[label].fitted), {}))
    settings, changed = fitted(usual, fitting)
    return changed, "" if settings is usual else told_smaller(usual, settings)


def typed(layer: Layer) -> list[str]:
    """The settings that somebody has given."""
    return [key for key, origin in layer.items() if origin.place != HAND]


def refuse_misfit(
    settings: Mapping[str, Settings], found: Mapping[str, Size], data: Mapping[str, Dataset[Any]]
) -> None:
    """Refuse a model that could not be trained with these settings on this data, by its name."""
    for label, one in settings.items():
        if found[label].fitted:
            continue
        try:
            model = on_meta(_config(one, found[label], data[label].spec))
            freeze(model, one["train.freeze"])
            work(one, data[label], model)
        except (UsageError, DataError) as error:
            raise type(error)(f"{label} cannot be trained so: {error}, or name other --models") from None


def _config(settings: Settings, size: Size, spec: DataSpec | int) -> Config:
    return model_config(settings, spec, **({} if size.width is None else {WIDTH: size.width}))


def _one_step(settings: Settings, size: Size, kind: str, data: Dataset[Any]) -> float:
    """What one training step takes, in the unit of the budget."""
    model = _config(settings, size, data.spec).build()
    task = work(settings, data, model)
    batch = task.sampler.batch(0, settings["train.batch_size"])
    if kind == "tokens":
        return float(batch.n_counted)
    if kind == "flops":
        return flops_per_target(model, batch, task.objective) * batch.n_counted
    took = []
    for _ in range(2):
        began = time.monotonic()
        loss, _, _ = task.objective(model, batch, None)
        loss.backward()
        took.append(time.monotonic() - began)
    torch.manual_seed(0)
    return min(took)
