"""What a model solves for before its first step, solved for once more with the held-out part, when all is chosen by it.

    begin     W from the training part: by it the best weights, the share and the temperature are chosen
    refit     W' from the training part and the held-out part: by it the run answers from then on

The run keeps W beside its weights, in before_refit.safetensors: of its own held-out part, which W' has learnt, it tells
what the model with W says (`TrainedRun.before_refit`). A run that starts from this one begins with W as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from regard.core.fitted import Begins, FitSettings, Noted
from regard.data import settings as data_settings
from regard.data.split import rule
from regard.data.worlds import PREFIX
from regard.run.dataset import start_of
from regard.storage import disk, tensors
from regard.tasks.verbs import Refits
from regard.training import settings as train_settings
from regard.training.before_refit import BEFORE_REFIT, holds, put_back
from regard.training.run_folder import WEIGHTS, claim

if TYPE_CHECKING:
    from torch import Tensor, nn

    from regard.run.run import Run
    from regard.run.settings import Settings
    from regard.training.display import Display


def refit(run: Run, settings: Settings, display: Display) -> None:
    """Bring a run that has just been trained, and its folder, to what `train.refit` says."""
    if not isinstance(run.task, Refits) or _goes_on_with_another(settings):
        return
    wanted = is_wanted(settings)
    if run.is_refit:
        if wanted and not holds(run.model, run.before):
            return  # one that had nothing left to do
        put_back(run.model, run.before)
    if wanted:
        _learn(run, settings, display)
    elif run.is_refit:
        with claim(run.path) as folder:
            folder.publish(_weights(run.model), without=[BEFORE_REFIT])
            disk.discard(run.path / BEFORE_REFIT)
        run.before = {}


def is_wanted(settings: Settings) -> bool:
    """As said; where nothing is, of data whose held-out part was split off it, and is no file or fold of somebody's."""
    asked = settings["train.refit"]
    if asked != "auto":
        return bool(asked)
    return rule(str(settings["data.valid"])) is not None and not str(settings["data.path"]).startswith(PREFIX)


def _goes_on_with_another(settings: Settings) -> bool:
    """Whether what is solved for is that of another run, and was never solved for here."""
    start = start_of(settings)
    return start is not None and start.processor is not None


def _learn(run: Run, settings: Settings, display: Display) -> None:
    before = _solved_again(run, settings, display)
    if not before:
        return
    with claim(run.path) as folder:
        # In this order: with the first file alone the run is what it was.
        folder.publish({BEFORE_REFIT: tensors.chunks(before)})
        folder.publish(_weights(run.model))
    run.before = before


def _solved_again(run: Run, settings: Settings, display: Display) -> dict[str, Tensor]:
    """Solve for the first of equal parts, and let the others have the same. What it took the place of, by name."""
    assert isinstance(run.task, Refits)
    assert run.dataset is not None
    training = train_settings.from_dict(settings.section("train"))
    data = data_settings.from_dict(settings.section("data"))
    parts: dict[str, Any] = {name: part for name, part in run.model.named_modules() if isinstance(part, Begins)}
    if not parts:
        return {}
    before = {name: {own: one.clone() for own, one in tensors.weights_of(part).items()} for name, part in parts.items()}
    first = next(iter(parts))
    problem = run.task.fitting(run.task.with_held_out(run.dataset), parts[first], training, data)
    how = FitSettings(training.seed, training.memory_bytes, class_weights=problem.class_weights)
    parts[first].begin(problem.data, how, Noted(display.note))
    now = tensors.weights_of(parts[first])
    solved = {own: one for own, one in now.items() if not torch.equal(one, before[first][own])}
    for part in parts.values():
        put_back(part, solved)
    return {f"{name}.{own}".lstrip("."): before[name][own] for name in parts for own in solved}


def _weights(model: nn.Module) -> dict[str, Iterator[Any]]:
    return {WEIGHTS: tensors.chunks(tensors.weights_of(model), tensors.weights_metadata(model))}
