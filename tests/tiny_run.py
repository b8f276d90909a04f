"""A training run of a second: a tiny model on a stream whose every batch is a pure function of its number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.core import registry
from regard.data.batch import Batch
from regard.training.display import Display, Evaluation, Result, Start, Update
from regard.training.loop import train
from regard.training.problem import TrainingProblem
from regard.training.resume import Resume
from regard.training.settings import TrainSettings

VOCABULARY, LENGTH, ROWS = 11, 8, 4
SETTINGS = TrainSettings(
    budget="12steps",
    batch_size=ROWS,
    length=LENGTH,
    lr=1e-2,
    evaluate_every=4,
    save_every=3,
    keep=2,
    threads=1,
    device="cpu",
)


@dataclass(frozen=True)
class Steps:
    """Rows in which each token follows the last by the row's own distance; rows go on from batch to batch."""

    seed: int = 0

    def batch(self, step: int, batch_size: int) -> Batch:
        row = torch.arange(batch_size)[:, None]
        place = torch.arange(LENGTH + 1)[None] + step * LENGTH
        ids = (row + self.seed + place * (1 + (row + step // 7) % 3)) % VOCABULARY
        indices = list(range(step * batch_size, (step + 1) * batch_size))
        lengths = torch.full((batch_size,), LENGTH)
        return Batch(ids[:, :-1].clone(), ids[:, 1:].clone(), lengths, indices, fresh=step % 7 == 0)


def held_out() -> Iterator[Batch]:
    return (Steps(5).batch(i, ROWS) for i in range(3))


def model_of(name: str = "gpt", **settings: Any) -> nn.Module:
    """A tiny model with the same numbers every time."""
    torch.manual_seed(1)
    return registry.build(name, vocab_size=VOCABULARY, size="tiny", **settings)


def task_of(model: nn.Module, sampler: Any = None) -> TrainingProblem:
    stack: Any = model.stack
    identity = {"hash": "data-1", "tokenizer": "words-1"}
    files = {"tokenizer.json": b"{}\n"}
    sampler = Steps() if sampler is None else sampler
    return TrainingProblem(
        sampler, held_out, 3 * ROWS * LENGTH, carries=not stack.state_grows, identity=identity, files=files
    )


def run(
    path: Path,
    name: str = "gpt",
    *,
    resume: str = "no",
    model: nn.Module | None = None,
    sampler: Any = None,
    **rest: Any,
) -> tuple[nn.Module, Result]:
    """Train a tiny model in `path`; `rest` changes settings, or is what `train` takes beside them."""
    model = model_of(name) if model is None else model
    passed = {key: rest.pop(key) for key in ("about", "display", "sample", "ranks") if key in rest}
    override = rest.pop("override", ())
    going_on = Resume(resume, override)  # type: ignore[arg-type]
    result = train(model, task_of(model, sampler), replace(SETTINGS, **rest), path, resume=going_on, **passed)
    return model, result


def weight_hash(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def folder_hash(path: Path, step: int) -> str:
    """The hash of the weights of one checkpoint."""
    return hashlib.sha256((path / "checkpoints" / f"{step:08d}" / "model.safetensors").read_bytes()).hexdigest()


@dataclass
class Recorder(Display):
    """A display that remembers everything it was told."""

    notes: list[str] = field(default_factory=list)
    saves: list[int] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    results: list[Result | None] = field(default_factory=list)

    def start(self, start: Start) -> None:
        self.starts.append(start)

    def update(self, update: Update) -> None:
        self.updates.append(update)

    def evaluated(self, evaluation: Evaluation) -> None:
        self.evaluations.append(evaluation)

    def saved(self, step: int, path: Path) -> None:
        self.saves.append(step)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finish(self, result: Result | None) -> None:
        self.results.append(result)
