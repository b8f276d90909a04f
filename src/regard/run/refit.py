"""What a model solves for before its first step, solved for once more with the held-out part, when all is chosen by it.

    begin     W from the training part: by it the best weights, the share and the temperature are chosen
    refit     W' from the training part and the held-out part: by it the run answers from then on

The run keeps W beside its weights, in before_refit.safetensors: of its own held-out part, which W' has learnt, it tells
what the model with W says (`TrainedRun.before_refit`). A run that starts from this one begins with W as well.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from regard.core.fitted import Begins, FitSettings, Noted
from regard.data import settings as data_settings
from regard.data.split import rule
from regard.data.worlds import PREFIX
from regard.run.dataset import start_of
from regard.storage import disk, tensors
from regard.tasks.verbs import Refits
from regard.training import run_folder
from regard.training import settings as train_settings
from regard.training.before_refit import BEFORE_REFIT, holds, put_back
from regard.training.run_folder import CONFIG, WEIGHTS, claim

if TYPE_CHECKING:
    from torch import Tensor, nn

    from regard.run.run import Run
    from regard.run.settings import Settings
    from regard.training.display import Display

REFIT = "train.refit"


def refit(run: Run, settings: Settings, display: Display) -> None:
    """Bring a run that has just been trained, and its folder, to what `train.refit` says."""
    if not isinstance(run.task, Refits) or _goes_on_with_another(settings):
        return
    match is_wanted(settings), run.is_refit:
        case True, True if not holds(run.model, run.before):
            pass  # one that had nothing left to do
        case True, _:
            _learn(run, settings, display)
        case False, True:
            _take_back(run, settings, display)


def is_wanted(settings: Settings) -> bool:
    """As said; where nothing is, of data whose held-out part was split off it, and is no file or fold of somebody's."""
    asked = settings[REFIT]
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
        folder.publish(_with_setting(run, settings) | _weights(run.model))
    run.before = before


def _take_back(run: Run, settings: Settings, display: Display) -> None:
    put_back(run.model, run.before)
    with claim(run.path) as folder:
        folder.publish(_with_setting(run, settings) | _weights(run.model), without=[BEFORE_REFIT])
        disk.discard(run.path / BEFORE_REFIT)
    run.before = {}
    display.note("train.refit=false: the run answers again by what has not learnt the held-out part")


def _solved_again(run: Run, settings: Settings, display: Display) -> dict[str, Tensor]:
    """Solve for the first of equal parts, and let the others have the same. What it took the place of, by name."""
    assert isinstance(run.task, Refits)
    assert run.dataset is not None
    training = train_settings.from_dict(settings.section("train"))
    data = data_settings.from_dict(settings.section("data"))
    parts: dict[str, Any] = {name: part for name, part in run.model.named_modules() if isinstance(part, Begins)}
    if not parts:
        return {}
    first = next(iter(parts.values()))
    problem = run.task.fitting(run.task.with_held_out(run.dataset), first, training, data)
    how = FitSettings(training.seed, training.memory_bytes, class_weights=problem.class_weights)
    again = copy.deepcopy(first)
    again.begin(problem.data, how, Noted(display.note))
    own, now = tensors.weights_of(first), tensors.weights_of(again)
    solved = {name: one for name, one in now.items() if not torch.equal(one, own[name])}
    before: dict[str, Tensor] = {}
    for place, part in parts.items():
        own = tensors.weights_of(part)
        before |= {f"{place}.{name}".lstrip("."): own[name].clone() for name in solved}
        put_back(part, solved)
    return before


def _with_setting(run: Run, settings: Settings) -> dict[str, Iterable[Any]]:
    """config.json with what was said of it. One that had ended is otherwise left as it is, and would not have that."""
    saved, said = run.config, settings.table[REFIT]
    train, origins = (saved.get(section, {}) for section in ("train", "origins"))
    run.config = saved | {"train": train | {"refit": said.value}, "origins": origins | {REFIT: said.place}}
    return {CONFIG: run_folder.json_file(run.config)}


def _weights(model: nn.Module) -> dict[str, Iterable[Any]]:
    return {WEIGHTS: tensors.chunks(tensors.weights_of(model), tensors.weights_metadata(model))}
