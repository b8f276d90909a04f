"""The run of a model that is fitted at once: the same folder as that of a training, written when the model is whole.

Nothing is written before, and then all files at once: an interrupted fit leaves no half model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

from regard.core.device import device_named
from regard.core.fitted import FitSettings, Fitted, OwnFile
from regard.core.progress import Progress
from regard.core.workers import AS_USUAL, Labour
from regard.errors import ResourceError, UsageError, is_out_of_memory
from regard.storage import disk, manifest, tensors
from regard.training import run_folder
from regard.training.display import Display, Result, Start
from regard.training.interrupt import ended_by_exception
from regard.training.run_folder import CONFIG, METRICS, WEIGHTS, RunFolder, claim
from regard.training.session import description
from regard.training.settings import TrainSettings
from regard.training.track import tracking

D = TypeVar("D")
# Training settings that a fit has a use for.
USED = frozenset({"memory", "spill", "seed", "device", "length", "track", "class_weights", "calibrate"})
REASON = "fitted"  # why such a run has ended


@dataclass(frozen=True)
class FittingProblem(Generic[D]):
    """What a fit reads, and how it is judged.

    data       what the model's `fit` takes.
    n_targets  how much that is, in units.
    judge      the scores of a model on what was held out, by plain names, "loss" among them where there is one.
    metric     the score that models are ranked by, where it is not the loss.
    identity   hashes of the data and of the tokenizer.
    files      further files of the run folder, by name.
    unit       what a target is, for the eye.
    class_weights  how much examples of each class count; None: the same.
    labour     who works, as far as somebody said.
    loss       the held-out loss of some examples alone, for a fit that asks often; None: that of `judge`.
    """

    data: D
    n_targets: int
    judge: Callable[[nn.Module], Mapping[str, Any]]
    metric: str | None
    identity: Mapping[str, str]
    files: Mapping[str, bytes]
    unit: str = "tokens"
    loss: Callable[[nn.Module], float] | None = None
    class_weights: tuple[float, ...] | None = None
    labour: Labour = AS_USUAL

    def held_out_loss(self, model: nn.Module) -> float:
        """What a fit may choose by; NaN where there is no such loss."""
        return self.scores(model).get("loss", math.nan) if self.loss is None else self.loss(model)

    def scores(self, model: nn.Module) -> dict[str, float]:
        """The loss and the metric on what was held out, as far as there are such."""
        found = self.judge(model)
        names = dict.fromkeys(name for name in ("loss", self.metric) if name is not None)
        return {name: float(found[name]) for name in names if name in found}


class _Teller:
    """Tells a display how a fit goes, and keeps what is to be known of it."""

    def __init__(self, display: Display, problem: FittingProblem[Any]) -> None:
        self.display, self.problem = display, problem
        self.notes: list[str] = []
        self.began: dict[str, float] = {}

    def __call__(self, part: str, share: float) -> None:
        total, now = self.problem.n_targets, time.monotonic()
        seconds = now - self.began.setdefault(part, now)
        self.display.progress(Progress(part, share * total, total, self.problem.unit, seconds))

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.display.note(text)


def fit_run(
    model: nn.Module,
    problem: FittingProblem[Any],
    settings: TrainSettings,
    path: Path,
    *,
    about: Mapping[str, Any],
    display: Display,
) -> Result:
    """Fit `model` and leave a run folder at `path`."""
    start, result = time.monotonic(), None
    if not isinstance(model, Fitted):
        raise UsageError(f"{type(model).__name__} says fitted = True and has no fit(data, settings, tell)")
    with claim(path) as run, ended_by_exception():
        if not run.is_new:
            raise UsageError(f"{path}: already holds a run; choose another --out")
        display.start(Start(path, "one fit", 0, "cpu", 0, 0.0, problem.unit))
        try:
            tell = _Teller(display, problem)
            facts = model.fit(problem.data, _fit_settings(model, problem, settings), tell)
            scores = _finite(problem.scores(model.eval()), display)
            seconds = time.monotonic() - start
            told = {"tokens": problem.n_targets, **facts, "notes": tell.notes}
            record = _publish(run, model, problem, settings, {**about, "fit": told}, scores, seconds)
            trackers = tracking(settings.track, path, display.note)
            with trackers.run(run.config()):
                trackers.log(record)
            loss, score = scores.get("loss"), scores.get(problem.metric or "loss")
            best = None if problem.metric is None else score
            result = Result(path, 1, problem.n_targets, seconds, None, loss, loss, 1, REASON, best)
            return result
        except (MemoryError, RuntimeError, OSError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"out of memory with --memory {settings.memory}; lower it, so that more is done on disk, or lower what "
                f"the model keeps, such as model.order"
            ) from error
        finally:
            display.finish(result)


def _fit_settings(model: nn.Module, problem: FittingProblem[Any], settings: TrainSettings) -> FitSettings:
    folder = None if settings.spill is None else Path(settings.spill).expanduser()
    judge = partial(problem.held_out_loss, model)
    return FitSettings(settings.seed, settings.memory_bytes, folder, judge, problem.class_weights, problem.labour)


def _finite(scores: dict[str, float], display: Display) -> dict[str, float]:
    """The scores without a loss that is none, with a word of why something held out has no probability at all."""
    if math.isfinite(scores.get("loss", 0.0)):
        return scores
    display.note(
        "the held-out loss is infinite: some of it has a probability of 0, which an n-gram model with smoothing = mle "
        "or closed = true gives to what was never seen"
    )
    return {name: value for name, value in scores.items() if name != "loss"}


def _publish(
    run: RunFolder,
    model: nn.Module,
    problem: FittingProblem[Any],
    settings: TrainSettings,
    about: Mapping[str, Any],
    scores: Mapping[str, float],
    seconds: float,
) -> dict[str, Any]:
    """Put everything into the run folder at once; the line of metrics comes back."""
    weights, metadata = _stored(model)
    disk.require_space(run.path, tensors.size_of(weights))
    own: Any = model
    config = description(own.config, problem.identity, settings, device_named(settings.device), about)
    record: dict[str, Any] = {"step": 1, "seconds": seconds, "tokens": problem.n_targets}
    record |= {f"valid_{name}": value for name, value in scores.items()}
    run.publish(
        {
            **{name: [content] for name, content in problem.files.items()},
            WEIGHTS: tensors.chunks(weights, metadata),
            METRICS: [manifest.canonical(record).replace(b"\n", b"") + b"\n"],
            CONFIG: run_folder.json_file(config),
        }
    )
    run.close_logs({"step": 1, "best_step": 1, "best_loss": scores.get("loss"), "reason": REASON})
    return record


def _stored(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """What goes into the file of weights, and what it says beside its numbers."""
    if isinstance(model, OwnFile):
        return model.stored(), {"format": "pt"}
    return tensors.weights_of(model), tensors.weights_metadata(model)
