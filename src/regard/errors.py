"""Failures a person can act on: one line saying what, where and what to do, and a stable exit code.

Anything that is not a `RegardError` is a bug of ours and is shown as one.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

LONGEST_NAME = 100  # characters of a name that are worth comparing
LONGEST_TOLD = 300  # characters of a failure within another

# What torch says on the CPU, of a file that it maps, on a GPU, and what its C++ says.
OUT_OF_MEMORY = ("allocate memory", "out of memory", "alloc_failed", "bad_alloc")


class RegardError(Exception):
    """A failure with a message fit for a terminal and an exit code fit for a script."""

    exit_code = 1


class UsageError(RegardError):
    """A wrong option, key, name or size."""

    exit_code = 2


class TooLong(UsageError):
    """An input of more tokens than `most`; of its characters, from the first on, `fits` make no more than that."""

    def __init__(self, message: str, most: int, fits: int = 0) -> None:
        super().__init__(message)
        self.most, self.fits = most, fits

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.most, self.fits)


class InputError(UsageError):
    """One of several inputs that cannot be answered. number: which, from 0. reason: what is wrong with it."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"input {number + 1} {reason}")
        self.number, self.reason = number, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.number, self.reason)


class DataError(RegardError):
    """Input text, labels or shards that cannot be used as they are."""

    exit_code = 3


class TooSmall(DataError):
    """A text with fewer tokens than a batch asks for."""


class CheckpointError(RegardError):
    """A run folder that is missing, damaged, foreign or of another architecture."""

    exit_code = 4


class NumericError(RegardError):
    """A loss or gradient that is not finite."""

    exit_code = 5


class ResourceError(RegardError):
    """Disk, memory or permissions."""

    exit_code = 6


class LockedError(RegardError):
    """A run folder that another process is writing."""

    exit_code = 7


class Stopped(RegardError):
    """Ended by a signal, with a good checkpoint on disk (EX_TEMPFAIL, so that schedulers requeue)."""

    exit_code = 75


@contextmanager
def blamed_on(file: object, kind: type[RegardError] = CheckpointError, advice: str = "") -> Iterator[None]:
    """Whatever the content of a saved file leads to, as an error of that kind that names the file.

    For the place where such content is decoded: there a wrong type or an impossible size is the file's, not a bug.
    """
    try:
        yield
    except (kind, CheckpointError, ResourceError, MemoryError, OSError):
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        told = str(error) if isinstance(error, RegardError) else f"{type(error).__name__}: {error}"
        brief = told if len(told) <= LONGEST_TOLD else f"{told[:LONGEST_TOLD]}..."
        raise kind(f"{file}: {brief}{advice}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, in any of the ways in which Python, numpy, torch and the system say so."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in OUT_OF_MEMORY)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint such as ", did you mean 'gpt'?", or the whole short list when nothing is close.

    >>> nearest("gtp", ["gpt", "rnn"])
    ", did you mean 'gpt'?"
    """
    options = sorted(known)
    close = difflib.get_close_matches(name[:LONGEST_NAME], options, n=1, cutoff=0.6)
    if close:
        return f", did you mean {close[0]!r}?"
    return f"; known: {', '.join(options)}" if options else ""
