"""A run of several seeds: each is trained into a folder of its own below the run's, and the run is all of them.

    run/
      config.json, model.safetensors ...   of the ensemble, whose parts are the models below
      parts/0/ parts/1/ ...                runs of their own, with checkpoints; what a resume goes on with

The budget is for the whole, so that an ensemble of four has a quarter of it for each. The weights of the ensemble are
written when the last part is done.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from regard.core.config import Config
from regard.core.device import device_named, move
from regard.errors import Stopped
from regard.run.settings import Origin, Settings
from regard.storage import manifest, tensors
from regard.tasks.dataset import Dataset
from regard.tasks.task import Task
from regard.training import run_folder
from regard.training.budget import share
from regard.training.display import Display, Passing, Result, Start
from regard.training.resume import require_same_run
from regard.training.run_folder import CONFIG, METRICS, WEIGHTS, RunFolder, claim
from regard.training.saved_model import saved_model
from regard.training.session import description
from regard.training.settings import TrainSettings

PARTS = "parts"
# Held-out examples, or tokens, by which an ensemble is scored when it is made: as many as make a loss worth comparing.
JUDGED = 20_000


class _Trains(Protocol):
    """Trains one part: its settings, its folder, and who is told."""

    def __call__(self, settings: Settings, out: Path, display: Display) -> Result: ...


class _PartDisplay(Passing):
    """Tells of one part on the display of the whole, which stays open until the last is done."""

    def __init__(self, inner: Display, told: str) -> None:
        super().__init__(inner)
        self.told = told

    def start(self, start: Start) -> None:
        super().start(replace(start, choice=", ".join(filter(None, [start.choice, self.told]))))

    def finish(self, result: Result | None) -> None: ...


@dataclass(frozen=True)
class Ensemble:
    """What is to be trained.

    settings, training   of the whole. about: what config.json says of them. config: of a part.
    override             settings of training that a resume may change.
    """

    settings: Settings
    training: TrainSettings
    out: Path
    about: Mapping[str, Any]
    task: Task[Any]
    config: Config
    dataset: Dataset[Any]
    override: Collection[str] = ()

    def described(self) -> dict[str, Any]:
        """What config.json says."""
        data, training = self.dataset, self.training
        identity = {"name": data.name, "hash": data.hash, "tokenizer": data.processor.hash}
        combined = self.task.combined(self.config, training.ensemble)
        return description(combined, identity, training, device_named(training.device), self.about)


def train_ensemble(of: Ensemble, display: Display, train_part: _Trains) -> Result:
    """Train every part and leave a run folder of all of them."""
    described, result = of.described(), None
    with claim(of.out) as run:
        try:
            _begin(run, described, of)
            parts = range(of.training.ensemble)
            results = [_part(number, of.settings, of.out, display, train_part) for number in parts]
            result = _joined(run, of, results, display)
            return result
        finally:
            display.finish(result)


def part_settings(settings: Settings, number: int) -> Settings:
    """Those of one part: its own seed and its share of the budget."""
    count = settings["train.ensemble"]
    changes = {
        "train.seed": settings["train.seed"] + number,
        "train.budget": share(settings["train.budget"], 1 / count),
        "train.ensemble": 1,
    }
    place = f"part {number} of an ensemble"
    return Settings({**settings.table, **{key: Origin(value, place) for key, value in changes.items()}})


def _part(number: int, settings: Settings, out: Path, display: Display, train_part: _Trains) -> Result:
    told = f"part {number + 1} of {settings['train.ensemble']}"
    try:
        return train_part(part_settings(settings, number), out / PARTS / str(number), _PartDisplay(display, told))
    except Stopped:
        raise Stopped(f"{out}: stopped in {told}, with a checkpoint; continue with --resume") from None


def _begin(run: RunFolder, config: dict[str, Any], of: Ensemble) -> None:
    """Say what the folder will be, so that a resume finds it."""
    if not run.is_new:
        # Before anything is written: what the parts would refuse must not stand in the folder of the whole.
        require_same_run(run.config(), config, of.override)
        run.open_logs()
    files = {name: [content] for name, content in of.dataset.processor.files().items()}
    run.publish({**files, CONFIG: run_folder.json_file(config)})


def _joined(run: RunFolder, of: Ensemble, results: list[Result], display: Display) -> Result:
    """The parts as one model, with its scores on what was held out."""
    task, dataset = of.task, of.dataset
    start, weights = time.monotonic(), dict[str, Tensor]()
    for number in range(len(results)):
        part = tensors.read(run_folder.verified_weights(run.path / PARTS / str(number)))
        weights |= {f"parts.{number}.{name}": tensor for name, tensor in part.items()}
    saved = saved_model(run.path, run.config())
    run.publish({WEIGHTS: tensors.chunks(weights, tensors.weights_metadata(saved.shapes))})
    model = saved.with_weights(run.path / WEIGHTS).eval()
    move(model, device_named(of.training.device))
    held_out = dataset.part("valid")
    scores = {} if not held_out else task.evaluate(model, dataset.processor, task.limited(held_out, JUDGED)).scores
    metric = task.judged_by(dataset.processor)
    score, loss = scores.get(metric), scores.get("loss")
    step, tokens = sum(one.step for one in results), sum(one.tokens for one in results)
    seconds = sum(one.seconds for one in results) + time.monotonic() - start
    record = {"step": step, "seconds": seconds, "tokens": tokens}
    record |= {f"valid_{name}": float(scores[name]) for name in dict.fromkeys(("loss", metric)) if name in scores}
    run.rewrite(METRICS, [manifest.canonical(record).replace(b"\n", b"") + b"\n"])
    run.close_logs({"step": step, "best_step": step, "best_loss": loss, "reason": results[-1].reason})
    told = ", ".join(f"{one.best_score:.4g}" for one in results if one.best_score is not None)
    if told and score is not None:
        display.note(f"{metric} {score:.4g} together; alone, in training, {told}")
    last = results[-1]
    return replace(
        last, folder=run.path, step=step, tokens=tokens, seconds=seconds, valid_loss=loss, best_loss=loss,
        best_step=step, best_score=score,
    )  # fmt: skip
