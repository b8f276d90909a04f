"""Pool: loaded runs, lent to one question at a time.

Looking listens to a model, and what listens must not hear another question. Where questions to one run meet it is
loaded again, so that a short one is answered while a long one is computed.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Semaphore
from typing import Any

from regard.serving import wanted
from regard.serving.guard import Refused
from regard.training.run_folder import CONFIG, WEIGHTS

IN_MEMORY = 4  # runs
COPIES = 3  # of one run, at most, unless told otherwise; and those that are kept
WAITING = 8  # long questions that wait for their turn
BETWEEN = 0.1  # seconds between two looks at whether a question that waits is still wanted

Key = tuple[Path, tuple[int, ...]]


class RunPool:
    """Runs by their folders. A folder that was written anew is another run. copies: of one that are lent at most."""

    def __init__(self, load: Callable[[Path], Any], copies: int = COPIES) -> None:
        self.load, self.copies = load, copies
        self.changed = Condition()
        self.free: OrderedDict[Key, list[Any]] = OrderedDict()
        self.count: Counter[Key] = Counter()
        self.asked: dict[Path, float] = {}  # when each folder was asked for last

    @contextmanager
    def lent(self, path: Path) -> Iterator[Any]:
        """The run of a folder, for as long as the block runs."""
        key = (path, stamp_of(path))
        self.asked[path] = time.monotonic()
        run = self._taken(key)
        try:
            yield run
        finally:
            with self.changed:
                if len(self.free[key]) < COPIES:
                    self.free[key].append(run)
                else:
                    self.count[key] -= 1
                self._forget()
                self.changed.notify_all()

    def lends(self, path: Path) -> bool:
        """Whether a question has the run of a folder, or waits until it is loaded."""
        with self.changed:
            return any(len(free) < self.count[key] for key, free in self.free.items() if key[0] == path)

    def forget(self, path: Path) -> None:
        """Let go of the runs of a folder that are not in use."""
        with self.changed:
            for key in [key for key in self.free if key[0] == path]:
                self.count[key] -= len(self.free[key])
                self.free[key].clear()
                if not self.count[key]:
                    del self.free[key], self.count[key]

    def _taken(self, key: Key) -> Any:
        while True:
            with self.changed:
                free = self.free.setdefault(key, [])
                self.free.move_to_end(key)
                if free:
                    return free.pop()
                if self.count[key] < self.copies:
                    self.count[key] += 1
                    break
                self.changed.wait(BETWEEN)
            wanted.check()  # outside of the lock, as it may let those compute who give a run back
        try:
            return self.load(key[0])
        except BaseException:
            with self.changed:
                self.count[key] -= 1
                self._forget()
                self.changed.notify_all()
            raise

    def _forget(self) -> None:
        """Let go of the runs that are not in use and were not asked for lately, or whose folder was written anew."""
        keys = list(self.free)
        latest = {key[0]: key for key in keys}
        kept = set(keys[-IN_MEMORY:]) & set(latest.values())
        for key in keys:
            if key not in kept and len(self.free[key]) == self.count[key]:
                del self.free[key], self.count[key]


class Turns:
    """Turns of long questions: one is computed at a time, and a few wait."""

    def __init__(self) -> None:
        self.places = Semaphore(1 + WAITING)
        self.turn = Semaphore()

    @contextmanager
    def taken(self) -> Iterator[None]:
        if not self.places.acquire(blocking=False):
            raise Refused(503, "too many long texts are being looked at: try again in a while")
        try:
            while not self.turn.acquire(timeout=BETWEEN):
                wanted.check()
            try:
                yield
            finally:
                self.turn.release()
        finally:
            self.places.release()


def stamp_of(path: Path) -> tuple[int, ...]:
    """When the files of a run were written."""
    files = [path] if path.is_file() else [path / CONFIG, path / WEIGHTS]
    return tuple(file.stat().st_mtime_ns for file in files if file.exists())
