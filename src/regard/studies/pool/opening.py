"""Which pool: this process, processes beside it with the cores and GPUs shared out, or a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass

from regard.core.workers import n_cores
from regard.errors import UsageError
from regard.studies.pool.pool import Here, Pool
from regard.studies.pool.worker import GPUS

MOST = 1024
EVERY_GPU = ("auto", "cuda")  # names of devices that leave it open which


@dataclass(frozen=True)
class SideBySide:
    """How many trainings are made side by side, and where.

    count  None: one on this machine, as many as there is room for on a cluster.
    ray    the address of a cluster, or auto; None: this machine.
    """

    count: int | None = None
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None and not 1 <= self.count <= MOST:
            raise UsageError(f"--workers: expected a whole number from 1 to {MOST:,}, found {self.count}")

    @property
    def elsewhere(self) -> bool:
        """Whether other processes than this one are asked."""
        return self.ray is not None or (self.count or 1) > 1

    @property
    def note(self) -> str:
        """What to know of so many."""
        cores = n_cores()
        if self.ray is not None or (self.count or 1) <= cores:
            return ""
        return f"--workers {self.count} is more than the {cores} cores here: they take turns, and all get slower"


@contextmanager
def opened(workers: SideBySide, device: str, modules: Sequence[str] = ()) -> Iterator[Pool]:
    """The pool, within the block. modules: of other people, which workers import too."""
    with _stdout_kept() if workers.ray is not None else nullcontext():
        pool = _pool(workers, device, modules)
        try:
            yield pool
        finally:
            pool.close()


@contextmanager
def _stdout_kept() -> Iterator[None]:
    """Keep for results what is printed there: Ray prints ten lines on a worker that died, of which we tell in one."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        yield


def _pool(workers: SideBySide, device: str, modules: Sequence[str]) -> Pool:
    if not workers.elsewhere:
        return Here()
    if workers.ray is not None:
        from regard.studies.pool.ray_pool import RayPool

        return RayPool(workers.ray, workers.count, device, modules)
    from regard.studies.pool.processes import ProcessPool

    count = workers.count or 1
    return ProcessPool(count, threads_each(count), modules, _gpus(device))


def threads_each(count: int) -> int:
    """The threads of each of so many workers, which together have those that this process has."""
    import torch

    return max(1, torch.get_num_threads() // count)


def _gpus(device: str) -> list[str]:
    """Those of this machine that may be shared out."""
    if device not in EVERY_GPU:
        return []
    seen = [one.strip() for one in os.environ.get(GPUS, "").split(",") if one.strip()]
    if seen:
        return seen
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]
