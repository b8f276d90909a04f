"""A pool on a Ray cluster (https://docs.ray.io): each job a task, on whichever machine has room for it.

Runs lie in one folder that all machines see, so that a job whose worker or machine is lost goes on from its checkpoint
wherever it is tried again. What jobs tell goes through a queue on the machine that asked.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

from regard.core.ray_workers import BETWEEN, Cluster, connect, library
from regard.core.workers import TICK
from regard.errors import LONGEST_TOLD, ResourceError, UsageError
from regard.studies.pool.opening import EVERY_GPU
from regard.studies.pool.parcel import packed, unpacked
from regard.studies.pool.pool import Ended, Job, Told, done, reason
from regard.studies.pool.worker import Surroundings, refuse_other_versions, versions

ANSWERS = 120.0  # seconds that a machine has to say what it has installed
CLIENT = "ray://"  # of a machine that is none of the cluster's
MOST_TOLD = 10_000  # events that nobody has taken yet


class RayPool:
    """So many tasks of a cluster at once; None: as many as it has cores, or of trainings on GPUs as it has those."""

    def __init__(self, address: str, count: int | None, device: str, modules: Sequence[str]) -> None:
        self.ray = library()
        if address.startswith(CLIENT):
            raise UsageError(
                f"--ray {address}: runs are written where the cluster sees them; start this on one of its machines, "
                f"with --ray auto"
            )
        self._is_mine = not self.ray.is_initialized()
        if self._is_mine:
            connect(self.ray, address)
        self.cluster = Cluster(self.ray)
        try:
            machines = [one for one in self.ray.nodes() if one["Alive"]]
            self._refuse_others(machines)
            self.side_by_side, self.threads, needs = _shares(address, machines, count, device)
            from ray.util.queue import Queue  # pyright: ignore[reportMissingImports]  # an extra

            self.queue = Queue(MOST_TOLD, actor_options={"num_cpus": 0} | _here(self.ray))
        except BaseException:
            self.close()
            raise
        self.surroundings = Surroundings(self.threads, modules=tuple(modules))
        # A lost worker is tried again by whoever submitted the job, who is then told of it.
        self.task = self.ray.remote(max_retries=0, **needs)(_did)
        self.running: dict[Any, Hashable] = {}

    @property
    def room(self) -> int:
        return self.side_by_side - len(self.running)

    def warm(self, jobs: int) -> None:
        """Ray starts workers by itself, and keeps them."""

    def submit(self, key: Hashable, job: Job) -> None:
        self.running[self.task.remote(key, packed(job), self.surroundings, self.queue)] = key

    def wait(self, told: Told) -> list[Ended]:
        self.cluster.require()
        ready, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=TICK)
        with suppress(self.ray.exceptions.RayError):  # of the queue: what is told is not what counts
            actor: Any = self.queue.actor  # asked by itself, as the queue would wait without an end
            waiting = self.ray.get(actor.qsize.remote(), timeout=BETWEEN)
            for key, event in self.ray.get(actor.get_nowait_batch.remote(waiting), timeout=BETWEEN):
                told(key, event)
        return [self._ended(one, self.running.pop(one)) for one in ready]

    def stop(self) -> None:
        for one in self.running:
            self.ray.cancel(one, force=False)  # which is a Ctrl-C there

    def close(self) -> None:
        if self.cluster.is_gone:
            return
        for one in getattr(self, "running", ()):
            with suppress(self.ray.exceptions.RayError):
                self.ray.cancel(one, force=True)
        if self._is_mine:
            self.ray.shutdown()

    def _ended(self, task: Any, key: Hashable) -> Ended:
        failures = self.ray.exceptions
        try:
            return self.ray.get(task)
        except failures.TaskCancelledError:
            return Ended(key, "stopped")
        except failures.RayTaskError as error:
            return Ended(key, "failed", None, *reason(error.cause))
        except failures.RayError as error:
            return Ended(key, "lost", text=_line(error))

    def _refuse_others(self, machines: Sequence[dict[str, Any]]) -> None:
        """Refuse a cluster with a machine whose numbers may be others, or that has no regard at all."""
        from ray.util.scheduling_strategies import (  # pyright: ignore[reportMissingImports]
            NodeAffinitySchedulingStrategy,
        )

        failures = self.ray.exceptions
        for one in machines:
            place = NodeAffinitySchedulingStrategy(one["NodeID"], soft=False)
            asked = self.ray.remote(num_cpus=0, scheduling_strategy=place, max_retries=0)(refuse_other_versions)
            try:
                self.ray.get(asked.remote(versions()), timeout=ANSWERS)
            except failures.RayTaskError as error:
                raise UsageError(f"--ray: {reason(error.cause)[0]}") from None
            except failures.RayError as error:
                name = one["NodeManagerHostname"]
                raise ResourceError(f"--ray: {name} cannot work for regard: {_line(error)}; install it there") from None


def _did(key: Hashable, payload: bytes, surroundings: Surroundings, queue: Any) -> Ended:
    """Runs on a worker."""

    def tell(event: Any) -> None:
        queue.actor.put_nowait.remote((key, event))  # without a look at whether it came

    try:
        surroundings.take_on()
        job = unpacked(payload)  # from whoever this worker works for
    except Exception as error:
        return Ended(key, "failed", None, *reason(error))
    return done(key, job, tell)


def _shares(
    address: str, machines: Sequence[dict[str, Any]], count: int | None, device: str
) -> tuple[int, int, dict[str, float]]:
    """How many jobs at once, the threads of each, and what of a machine each asks for."""
    cores = [int(one["Resources"].get("CPU", 0)) for one in machines]
    cores = [some for some in cores if some]
    gpus = int(sum(one["Resources"].get("GPU", 0) for one in machines)) if device in EVERY_GPU else 0
    if not cores:
        raise ResourceError(f"--ray {address}: the cluster has no cores to work on")
    at_once = count or gpus or sum(cores)
    threads = max(1, min(min(cores), sum(cores) // at_once))
    needs = {"num_cpus": float(threads)}
    if gpus:
        needs["num_gpus"] = min(1.0, gpus / at_once)
    # More than there is room for would only wait.
    return min(at_once, sum(some // threads for some in cores)), threads, needs


def _here(ray: Any) -> dict[str, Any]:
    """What puts an actor on this machine."""
    from ray.util.scheduling_strategies import (  # pyright: ignore[reportMissingImports]
        NodeAffinitySchedulingStrategy,
    )

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)}


def _line(error: BaseException) -> str:
    """What Ray says of a failure: the first sentence of its many."""
    told = " ".join(str(error).split()).partition(". ")[0]
    return f"{type(error).__name__}: {told[:LONGEST_TOLD]}".rstrip(".: ")
