"""Workers: one function over many items, in this process, in several, or on a Ray cluster. The results are the same.

    with open_workers(count=4) as workers:
        for found in workers.map(function, items): ...      in the order of the items, however they were done

A function of a module and items that can be pickled go to processes of their own; few items are under way at a time,
so that neither they nor their results fill the memory. A worker that is lost, killed or out of memory, costs its item
another attempt. What is left unfinished when the block ends is ended with it, and so are processes whose starter dies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any, Generic, Self, TypeVar

from regard.core.limits import require_count
from regard.errors import ResourceError

A = TypeVar("A")
B = TypeVar("B")
ATTEMPTS = 3
TICK = 0.1  # seconds in which a signal is heard
GOING = 1.0  # seconds for what workers shared to be given back


class Workers(ABC):
    """Who works. count: how many items are worked on at the same time. is_here: whether that is in this process."""

    count: int = 1
    is_here: bool = False

    @abstractmethod
    def map(self, function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """What the function makes of each item, in the order of the items. Its failure is raised here."""

    @abstractmethod
    def close(self, at_once: bool = False) -> None:
        """Let the workers go. at_once: in the middle of what they are at."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(at_once=kind is not None)


class ThisProcess(Workers):
    """One item after the other, here."""

    is_here = True

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        return map(function, items)

    def close(self, at_once: bool = False) -> None:
        """Nobody is there to go."""


@dataclass
class _Task(Generic[A]):
    item: A
    future: Future[Any]
    attempts: int = 1


class Processes(Workers):
    """So many processes of this machine, each started afresh and without the script that started this one.

    threads  that each may use (OMP_NUM_THREADS).
    """

    def __init__(self, count: int, threads: int = 1) -> None:
        self.count, self.threads = count, threads
        self._begin()

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        rest, tasks = iter(items), deque[_Task[A]]()
        try:
            while True:
                for item in islice(rest, 2 * self.count - len(tasks)):
                    tasks.append(_Task(item, self._submitted(function, item)))
                if not tasks:
                    return
                yield self._result(function, tasks)
        finally:
            for task in tasks:
                task.future.cancel()

    def close(self, at_once: bool = False) -> None:
        if at_once:
            self._alive.close()
            # Those that have not begun to listen would look for semaphores that may be gone by then.
            begun: dict[int, Any] = getattr(self._pool, "_processes", None) or {}
            for process in list(begun.values()):
                process.kill()
        manager: Any = getattr(self._pool, "_executor_manager_thread", None)
        self._pool.shutdown(wait=not at_once, cancel_futures=True)
        if at_once and manager is not None:
            manager.join(GOING)  # not without an end: it may be in the middle of handing over an item
        self._alive.close()

    def _begin(self) -> None:
        context = get_context("spawn")
        end, self._alive = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(self.count, context, _become_worker, (end, self.threads))

    def _submitted(self, function: Callable[[A], B], item: A) -> Future[B]:
        with bare_main():
            try:
                return self._pool.submit(function, item)
            except BrokenProcessPool:  # an item of before is told of it, and tried again
                lost = Future[B]()
                lost.set_exception(BrokenProcessPool())
                return lost

    def _result(self, function: Callable[[A], B], tasks: deque[_Task[A]]) -> Any:
        """What came of the first task. Where a worker was lost, all tasks that were under way are begun again."""
        while True:
            task = tasks[0]
            while not wait([task.future], TICK).done:
                pass
            try:
                result = task.future.result()
            except BrokenProcessPool:
                self._again(function, tasks)
            else:
                tasks.popleft()
                return result

    def _again(self, function: Callable[[A], B], tasks: deque[_Task[A]]) -> None:
        self.close(at_once=True)
        self._begin()
        for task in tasks:
            done = task.future.done() and not task.future.cancelled() and task.future.exception() is None
            if done:
                continue
            if task.attempts == ATTEMPTS:
                raise lost_worker(ATTEMPTS)
            task.attempts += 1
            task.future = self._submitted(function, task.item)


def open_workers(count: int = 1, ray: str | None = None, threads: int = 1) -> Workers:
    """Workers to be used in a block. ray: the address of a cluster, or auto (`core.ray_workers`)."""
    require_count(count, "workers")
    if ray is not None:
        from regard.core.ray_workers import RayWorkers

        return RayWorkers(ray, threads)
    return ThisProcess() if count == 1 else Processes(count, threads)


@dataclass(frozen=True)
class Labour:
    """Who is to work, as far as somebody said: so many processes of this machine, or a Ray cluster."""

    workers: int | None = None
    ray: str | None = None

    def open(self, usual: int, threads: int = 1) -> Workers:
        """usual: how many where nobody said."""
        return open_workers(usual if self.workers is None else self.workers, self.ray, threads)


ALONE = Labour(1)
AS_USUAL = Labour()


def n_cores() -> int:
    """The cores that this process may use."""
    count = getattr(os, "process_cpu_count", None)  # from Python 3.13 on
    if count is not None:
        return count() or 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def lost_worker(attempts: int) -> ResourceError:
    return ResourceError(
        f"a worker was lost {attempts} times in the middle of the same work (killed, or out of memory); take fewer "
        f"workers, or less memory for each"
    )


def _become_worker(end: Connection, threads: int) -> None:
    """What a process does before its first item. It ends with whoever started it, and hears no Ctrl-C of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if threads == 1 else "true"

    def watch() -> None:
        try:
            end.recv()
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def bare_main() -> Iterator[None]:
    """Start processes without the script of this one: its functions are not asked for, and it may have no guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
