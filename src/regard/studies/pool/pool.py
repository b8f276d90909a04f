"""Pool: where jobs are done. A job is a value with all that it needs, which tells while it runs and gives a result.

A pool has room for some jobs at once, and says of each how it ended. What to do then, also with a job whose worker was
lost, is the business of whoever submitted it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from regard.errors import RegardError, ResourceError, Stopped, is_out_of_memory

ATTEMPTS = 3  # at a job whose worker is lost each time
Told = Callable[[Hashable, Any], None]  # the key of a job, and what it tells


class Job(Protocol):
    """What a worker does. It is pickled on its way there."""

    def __call__(self, tell: Callable[[Any], None]) -> Any: ...


@dataclass(frozen=True)
class Ended:
    """How a job ended: with its result, with a reason and an exit code, by a signal, or because its worker is gone.

    text  the reason of a failure, or how the worker was lost.
    """

    key: Hashable
    how: Literal["done", "failed", "stopped", "lost"]
    result: Any = None
    text: str = ""
    code: int = 0


class Failed(RegardError):
    """A job that failed, wherever it was done, with its reason and exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


class Pool(Protocol):
    """Workers. `side_by_side` is how many jobs may run at once."""

    side_by_side: int

    @property
    def room(self) -> int:
        """How many more jobs may be submitted now."""
        ...

    def warm(self, jobs: int) -> None:
        """Begin to start workers: so many jobs will come soon."""
        ...

    def submit(self, key: Hashable, job: Job) -> None: ...
    def wait(self, told: Told) -> list[Ended]:
        """Those that have ended, after a moment in which what jobs tell is passed on."""
        ...

    def stop(self) -> None:
        """Ask all that run to end where they can go on later; `wait` says of each when it has."""
        ...

    def close(self) -> None:
        """End all workers at once."""
        ...


class Here:
    """The pool that is this process: one job at a time, done while it is waited for."""

    side_by_side = 1

    def __init__(self) -> None:
        self.submitted: tuple[Hashable, Job] | None = None

    @property
    def room(self) -> int:
        return int(self.submitted is None)

    def warm(self, jobs: int) -> None:
        """There is nobody to start."""

    def submit(self, key: Hashable, job: Job) -> None:
        self.submitted = (key, job)

    def wait(self, told: Told) -> list[Ended]:
        assert self.submitted is not None
        key, job = self.submitted
        self.submitted = None
        return [done(key, job, lambda event: told(key, event))]

    def stop(self) -> None:
        """A signal that this process gets is the job's own."""

    def close(self) -> None: ...


def done(key: Hashable, job: Job, tell: Callable[[Any], None]) -> Ended:
    """Do a job, and say how it ended; whatever a job fails with, the others must not be lost to it."""
    try:
        return Ended(key, "done", job(tell))
    except Stopped:
        return Ended(key, "stopped")
    except Exception as error:
        text, code = reason(error)
        return Ended(key, "failed", text=text, code=code)


def reason(error: Exception) -> tuple[str, int]:
    """Why something failed, in a line, and the exit code of that."""
    text = str(error).partition("\n")[0]
    if isinstance(error, RegardError):
        return text, error.exit_code
    if isinstance(error, MemoryError):
        return text or "out of memory", ResourceError.exit_code
    code = ResourceError.exit_code if is_out_of_memory(error) else RegardError.exit_code
    return f"{type(error).__name__}: {text}" if text else type(error).__name__, code
