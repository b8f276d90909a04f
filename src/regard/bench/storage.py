"""What surrounds the steps: a checkpoint of 100 million parameters, and the training loop's own cost."""

from __future__ import annotations

import io
import os
import shutil
import statistics
import time
from itertools import pairwise

import torch

from regard.bench.race import Row
from regard.core import registry
from regard.data.batch import Batch
from regard.storage.temporary import temporary_folder
from regard.training import checkpoint as checkpoints
from regard.training.checkpoint import Contents
from regard.training.display import Lines
from regard.training.loop import train
from regard.training.losses import model_loss
from regard.training.optimiser import Optimiser
from regard.training.problem import TrainingProblem
from regard.training.settings import TrainSettings

SECONDS_ALLOWED = 5.0


def checkpoint(repeats: int) -> list[Row]:
    """Weights and two moments of each, hashed, synced and read back, beside the five seconds allowed."""
    weights = {f"layers.{i}.weight": torch.randn(1000, 1000) for i in range(100)}
    moments = {f"optimiser/{name}/{part}": torch.randn(1000, 1000) for name in weights for part in ("first", "second")}
    spent = []
    with temporary_folder(None, "regard-bench-") as place:
        for step in range(1, max(2, repeats // 2) + 1):
            os.sync()
            start = time.perf_counter()
            path = checkpoints.save(place, step, Contents(weights, {}, moments, {}))
            checkpoints.verify(path)
            spent.append(time.perf_counter() - start)
            shutil.rmtree(path)
    seconds = statistics.median(spent)
    name = "checkpoint of 100M parameters saved and verified, beside 5 s"
    return [Row(name, seconds, SECONDS_ALLOWED, SECONDS_ALLOWED / seconds, 1.0, "s")]


def overhead(repeats: int) -> list[Row]:
    """A step of the training loop with logging and display, beside the same step in a bare script."""
    settings = TrainSettings(budget="150steps", batch_size=12, length=64, device="cpu", save_every=10**9)
    sampler = _Recorder(12, 64)
    _bare(settings, sampler)
    pairs = [(_looped(settings, sampler), _bare(settings, sampler)) for _ in range(repeats)]
    ratio = statistics.median(plain / looped for looped, plain in pairs)
    looped, plain = (statistics.median(column) for column in zip(*pairs, strict=True))
    name = "training loop, logging and display included, beside the bare step"
    return [Row(name, 768 / looped, 768 / plain, ratio, 0.98, "tokens/s")]


class _Recorder:
    """The same few batches over and over, made before the clock runs, and when each was asked for."""

    def __init__(self, rows: int, length: int) -> None:
        ids = torch.randint(65, (8, rows, length + 1), generator=torch.Generator().manual_seed(0))
        lengths = torch.full((rows,), length)
        self.batches = [Batch(i[:, :-1].contiguous(), i[:, 1:].contiguous(), lengths, list(range(rows))) for i in ids]
        self.times: list[float] = []

    def batch(self, step: int, batch_size: int) -> Batch:
        assert batch_size == len(self.batches[0].indices)
        self.times.append(time.perf_counter())
        return self.batches[step % len(self.batches)]

    def seconds(self) -> float:
        """The lower quartile of a step: other work on the machine hardly moves it."""
        spans = sorted(later - earlier for earlier, later in pairwise(self.times[10:]))
        self.times = []
        return spans[len(spans) // 4]


def _bare(settings: TrainSettings, sampler: _Recorder) -> float:
    torch.manual_seed(0)
    model = registry.build("gpt", vocab_size=65)
    optimiser = Optimiser(model, settings)
    for step in range(150):
        loss, count, _ = model_loss(model, sampler.batch(step, settings.batch_size), None)
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(optimiser.parameters, 1.0)
        optimiser.step(1e-3)
        optimiser.clear()
    return sampler.seconds()


def _looped(settings: TrainSettings, sampler: _Recorder) -> float:
    torch.manual_seed(0)
    model = registry.build("gpt", vocab_size=65)
    with temporary_folder(None, "regard-bench-") as folder:
        train(model, TrainingProblem(sampler), settings, folder / "run", display=Lines(io.StringIO(), every=0.0))
    return sampler.seconds()
