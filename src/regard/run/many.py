"""Several processes for one training: what they agree on before it begins, and what one process does alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from regard.core.data_spec import EXAMPLE
from regard.core.device import device_named
from regard.core.registry import entry
from regard.errors import UsageError
from regard.run.plan import Job
from regard.run.settings import Settings

if TYPE_CHECKING:
    from regard.training.parallel.ranks import Ranks
    from regard.training.settings import TrainSettings

UNTOLD_HISTORY = 1 << 14  # steps


def resumed(resume: str) -> str:
    """Whether a run goes on: also where torchrun starts the same command again after a failure."""
    from regard.training.parallel.group import was_restarted

    return "auto" if resume == "no" and was_restarted() else resume


@contextmanager
def together(job: Job) -> Iterator[tuple[Ranks, Job]]:
    """The processes that do a job together, started by torchrun, and the job with the folder that they agree on."""
    from regard.training.parallel.group import joined

    with joined(device_named(job.settings["train.device"])) as ranks:
        yield ranks, replace(job, out=ranks.shared(job.out))


def is_fitted(settings: Settings) -> bool:
    """Whether the model of a run is fitted at once instead of trained by steps."""
    # How much of a series is read where nobody says so is told by its step, once it is known.
    data = replace(EXAMPLE, history=settings["data.history"] or UNTOLD_HISTORY)
    return entry(settings["model.name"]).config(data, settings["model.size"], **settings.model_changes).fitted


def refuse_many(job: Job, training: TrainSettings) -> None:
    """Refuse several processes for what one does."""
    if is_fitted(job.settings):
        raise UsageError(f"{job.settings['model.name']} is fitted at once, by one process; start it without torchrun")
    if training.ensemble > 1:
        raise UsageError("train.ensemble: several processes train one model; start a training for each seed")
    if job.settings["data.path"] == "-":
        raise UsageError("standard input is read by one process alone; keep it in a file for several")


def refuse_devices(job: Job, training: TrainSettings, devices: int) -> None:
    """Refuse more processes than this machine, or a batch, has room for, before any is started."""
    import torch

    from regard.training.parallel.group import require_nccl

    refuse_many(job, training)
    if training.parallel == "none":
        raise UsageError(f"--devices {devices}: train.parallel=none is for one process; say auto, ddp or fsdp")
    device = device_named(training.device)
    if device.type == "cuda" and devices > torch.cuda.device_count():
        raise UsageError(f"--devices {devices}: this machine has {torch.cuda.device_count()} CUDA devices")
    if device.type == "cuda":
        require_nccl()
    if training.batch_size < devices:
        raise UsageError(f"--devices {devices}: train.batch_size={training.batch_size} has no row for each of them")
