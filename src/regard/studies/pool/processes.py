"""A pool of processes of this machine. One that is lost costs its job alone, and another takes its place."""

from __future__ import annotations

import pickle
import signal
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from regard.core.workers import TICK, bare_main
from regard.studies.pool.pool import Ended, Job, Told
from regard.studies.pool.worker import STOP, Surroundings, serve

AT_ONCE = 2.0  # seconds that a worker has to end by itself


@dataclass
class _Worker:
    """A process, our end of its connection, the GPU that it sees and the job that it is at."""

    process: BaseProcess
    connection: Connection
    gpu: str | None
    key: Hashable | None = None

    @property
    def death(self) -> str:
        """How it ended."""
        self.process.join(AT_ONCE)
        code = self.process.exitcode
        if code is None:
            return f"process {self.process.pid} does not answer"
        told = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"process {self.process.pid}, {told}"


class ProcessPool:
    """So many processes, started as they are needed. gpus: those that they share out among them."""

    def __init__(self, side_by_side: int, threads: int, modules: Sequence[str], gpus: Sequence[str] = ()) -> None:
        self.side_by_side, self.threads = side_by_side, threads
        self.modules, self.gpus = tuple(modules), tuple(gpus)
        self.workers: list[_Worker] = []
        self.is_stopping = False

    @property
    def room(self) -> int:
        return self.side_by_side - len(self._busy)

    @property
    def _busy(self) -> list[_Worker]:
        return [one for one in self.workers if one.key is not None]

    def warm(self, jobs: int) -> None:
        while len(self.workers) < min(jobs, self.side_by_side):
            self._started()

    def submit(self, key: Hashable, job: Job) -> None:
        payload = pickle.dumps(job)
        while True:
            idle = next((one for one in self.workers if one.key is None), None)
            worker = idle or self._started()
            try:
                worker.connection.send_bytes(payload)
            except OSError:  # it died while it had nothing to do
                self._let_go(worker)
                continue
            worker.key = key
            return

    def wait(self, told: Told) -> list[Ended]:
        busy = {one.connection: one for one in self._busy}
        ready = connection.wait(list(busy), TICK)
        found = [self._heard(busy[one], told) for one in ready if isinstance(one, Connection)]
        return [one for one in found if one is not None]

    def stop(self) -> None:
        self.is_stopping = True
        for worker in self._busy:
            with suppress(OSError):
                worker.connection.send_bytes(STOP)

    def close(self) -> None:
        for worker in self.workers:
            worker.connection.close()
            worker.process.terminate()
        until = time.monotonic() + AT_ONCE
        for worker in self.workers:
            worker.process.join(max(0.0, until - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self.workers = []

    def _heard(self, worker: _Worker, told: Told) -> Ended | None:
        """Pass on what a worker says; how its job ended, if it has."""
        key = worker.key
        try:
            while worker.connection.poll():
                message = worker.connection.recv()
                if isinstance(message, Ended):
                    worker.key = None
                    if message.how == "stopped" and not self.is_stopping:
                        return Ended(key, "lost", text=f"process {worker.process.pid}, ended by a signal")
                    return replace(message, key=key)
                told(key, message)
        except (EOFError, OSError):
            self._let_go(worker)
            return Ended(key, "lost", text=worker.death)
        return None

    def _started(self) -> _Worker:
        used = [one.gpu for one in self.workers]
        gpu = min(self.gpus, key=used.count, default=None)
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        surroundings = Surroundings(self.threads, modules=self.modules, gpu=gpu)
        process = context.Process(target=serve, args=(theirs, surroundings), name="regard-worker")
        with bare_main(), _without_ctrl_c():
            process.start()
        theirs.close()  # ours ends with the process
        worker = _Worker(process, ours, gpu)
        self.workers.append(worker)
        return worker

    def _let_go(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.connection.close()


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """A process that is started here ignores Ctrl-C, which a terminal sends to all, from its first moment on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
