"""Workers on a Ray cluster (https://docs.ray.io): each item a task, on whichever machine has room for it.

Files that items name must be readable under the same name on every machine. Ray itself tries the items of a worker or
a machine that is lost again elsewhere.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from regard.core.version import __version__
from regard.core.workers import ATTEMPTS, TICK, Workers, lost_worker
from regard.errors import LONGEST_TOLD, ResourceError, UsageError

A = TypeVar("A")
B = TypeVar("B")
AUTO = "auto"
ANSWERS = 10.0  # seconds that an address has to answer
BETWEEN, GONE = 2.0, 20.0  # seconds between two looks at a cluster, and without it before it is given up


class Cluster:
    """Whether the head of a cluster is still there.

    Ray ends the whole process, with exit code 1 and nothing to catch, a minute after it has lost it. is_gone: whether
    it was given up before; there is nothing to take leave of then. address: "" for a client of ray://, which has no
    such end and knows no head.
    """

    def __init__(self, ray: Any) -> None:
        self.address = ""
        with suppress(Exception):
            self.address = str(ray.get_runtime_context().gcs_address)
        self.looked = self.heard = time.monotonic()
        self.is_gone = False

    def require(self) -> None:
        """Refuse to go on where it has not answered for a while."""
        now = time.monotonic()
        if not self.address or now - self.looked < BETWEEN:
            return
        self.looked = now
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), BETWEEN).close()
            self.heard = time.monotonic()
        except OSError as error:
            if now - self.heard > GONE:
                self.is_gone = True
                raise ResourceError(
                    f"--ray: the cluster at {self.address} is gone ({error.strerror or error}); once there is one "
                    f"again the same command goes on"
                ) from None


class RayWorkers(Workers):
    """The cores of a cluster. auto: the one that this machine belongs to, or one of this machine's own.

    threads  cores that each item takes.
    """

    def __init__(self, address: str, threads: int = 1) -> None:
        self.threads = threads
        self._ray = library()
        self._is_mine = not self._ray.is_initialized()
        if self._is_mine:
            connect(self._ray, address)
        self._cluster = Cluster(self._ray)
        self.count = max(1, int(self._ray.cluster_resources().get("CPU", 1)) // threads)

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        task = self._ray.remote(num_cpus=self.threads, max_retries=ATTEMPTS - 1)(_called)
        rest, tasks = iter(items), deque[Any]()
        try:
            while True:
                for item in islice(rest, 2 * self.count - len(tasks)):
                    tasks.append(task.remote(function, item, __version__))
                if not tasks:
                    return
                yield self._result(tasks[0])
                tasks.popleft()
        finally:
            for one in () if self._cluster.is_gone else tasks:
                self._ray.cancel(one, force=True)

    def close(self, at_once: bool = False) -> None:
        if self._is_mine and not self._cluster.is_gone:
            self._ray.shutdown()

    def _result(self, task: Any) -> Any:
        failures = self._ray.exceptions
        while True:
            self._cluster.require()
            try:
                return self._ray.get(task, timeout=TICK)
            except failures.GetTimeoutError:
                continue
            except failures.RayTaskError as error:
                raise error.cause from None
            except failures.RayError as error:
                raise lost_worker(ATTEMPTS) from error


def _called(function: Callable[[A], B], item: A, version: str) -> B:
    """Runs on a worker."""
    if version != __version__:
        raise UsageError(f"regard is {version} here and {__version__} on a worker: install the same on both")
    return function(item)


def library() -> Any:
    try:
        import ray  # pyright: ignore[reportMissingImports]  # an extra
    except ImportError:
        raise UsageError("--ray needs the package ray: pip install 'regard[ray]'") from None
    return ray


def connect(ray: Any, address: str) -> None:
    """Become a driver of a cluster. auto: that of RAY_ADDRESS, or of this machine, or a new one."""
    known = _of_this_machine() if address == AUTO else address
    if known is not None:
        _require_answer(known)
    try:
        ray.init(known, log_to_driver=False, logging_level="error")
    except Exception as error:  # of many kinds, by what of the cluster does not answer
        told = " ".join(str(error).split())[:LONGEST_TOLD]
        raise ResourceError(
            f"--ray {address}: no cluster to work on: {told}; start one with ray start --head"
        ) from None


def _of_this_machine() -> str | None:
    """The cluster that somebody named in the environment, or that was last started or joined here; None without one."""
    if os.environ.get("RAY_ADDRESS", AUTO) != AUTO:
        return os.environ["RAY_ADDRESS"]
    record = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir())) / "ray" / "ray_current_cluster"
    try:
        return record.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _require_answer(address: str) -> None:
    """Refuse an address where nobody listens, which Ray would go on asking for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise UsageError(f"--ray {address}: expected auto, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWERS).close()
    except OSError as error:
        raise ResourceError(
            f"--ray {address} does not answer ({error.strerror or error}); start a cluster with ray start --head, or "
            f"forget one that is gone with ray stop"
        ) from None
