"""A worker: what a process is made like before its first job, and how one beside ours does jobs and listens meanwhile.

Nothing here imports torch: how many threads it has is said before it comes.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from multiprocessing.connection import Connection
from typing import Any

from regard.core.plugin import import_module
from regard.core.version import __version__
from regard.errors import UsageError
from regard.studies.pool.pool import Ended, done, reason
from regard.training.interrupt import ended_by_exception

STOP = b""
JOBS = "regard.studies.training"  # what most jobs are made of, and what takes a second to import
GPUS = "CUDA_VISIBLE_DEVICES"


def versions() -> dict[str, str]:
    """What must be the same on both sides for the same numbers."""
    return {"regard": __version__, "torch": metadata.version("torch").partition("+")[0]}


@dataclass(frozen=True)
class Surroundings:
    """What a worker has alike with the process that started it.

    folder   the current one, by which paths are understood.
    modules  of other people, which register something.
    gpu      the one that it sees; None: as it is.
    """

    threads: int
    folder: str = field(default_factory=os.getcwd)
    modules: tuple[str, ...] = ()
    gpu: str | None = None
    versions: Mapping[str, str] = field(default_factory=versions)

    def take_on(self) -> None:
        """Make this process like that."""
        refuse_other_versions(self.versions)
        os.environ["OMP_NUM_THREADS"] = str(self.threads)
        if self.gpu is not None:
            os.environ[GPUS] = self.gpu
        try:
            os.chdir(self.folder)
        except OSError:
            raise UsageError(
                f"{socket.gethostname()} has no folder {self.folder}: begin where all machines have one"
            ) from None
        import torch

        torch.set_num_threads(self.threads)
        for module in self.modules:
            import_module(module)


def refuse_other_versions(theirs: Mapping[str, str]) -> None:
    """Refuse a machine whose numbers may be others."""
    ours = versions()
    for name, version in theirs.items():
        if ours[name] != version:
            raise UsageError(
                f"{socket.gethostname()} has {name} {ours[name]} and the comparison began with {version}: install the "
                f"same there"
            )


def serve(connection: Connection, surroundings: Surroundings) -> None:
    """Do the jobs that come over the connection until it ends, one at a time.

    Ctrl-C is for whoever started this process: it says when to stop, and its death says so too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, jobs), daemon=True).start()
    telling = threading.Lock()

    def send(message: Any) -> None:
        with telling:
            connection.send(message)

    try:
        with ended_by_exception():
            refused = _taken_on(surroundings)
            while (payload := jobs.get()) is not None:
                send(refused or _done(payload, send))
    except (SystemExit, OSError):  # a signal between two jobs, or nobody to tell
        pass
    sys.stderr.flush()
    os._exit(0)  # what torch takes half a second to take down is taken down by the system


def _listen(connection: Connection, jobs: queue.SimpleQueue[bytes | None]) -> None:
    try:
        while True:
            payload = connection.recv_bytes()
            if payload == STOP:
                signal.raise_signal(signal.SIGTERM)  # which a training ends after its step
            else:
                jobs.put(payload)
    except (EOFError, OSError):
        jobs.put(None)
        signal.raise_signal(signal.SIGTERM)


def _taken_on(surroundings: Surroundings) -> Ended | None:
    """Make ready for the first job while it is not there yet; what every job is told where that failed."""
    try:
        surroundings.take_on()
        importlib.import_module(JOBS)
    except Exception as error:
        return Ended(None, "failed", None, *reason(error))
    return None


def _done(payload: bytes, send: Callable[[Any], None]) -> Ended:
    def tell(event: Any) -> None:
        with suppress(OSError):  # `_listen` hears of it too
            send(event)

    try:
        job = pickle.loads(payload)  # from the process that started this one
        return done(None, job, tell)
    except SystemExit:
        return Ended(None, "stopped")
    except Exception as error:
        return Ended(None, "failed", None, *reason(error))
