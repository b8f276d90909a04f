"""Progress: long work says how far it is, and whoever shows it listens. Where nobody does, saying it costs nothing.

with stage("reading", total=size, unit="bytes") as advance:      the work
    for chunk in chunks:
        advance(len(chunk))

with watching(display.progress):                                  the screen
    prepare(...)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
OFTEN = 256  # items between two looks at the clock
EVERY = 0.1  # seconds between two words
QUIET = 0.3  # seconds of which nothing is said: most work is over by then
Advance = Callable[[float], None]


@dataclass(frozen=True)
class Progress:
    """Where a stage of work stands.

    part     what is being done, such as "reading".
    done     so many units of `total`; a total that nobody knows is 0.
    seconds  since the stage began.
    """

    part: str
    done: float
    total: float
    unit: str
    seconds: float

    @property
    def share(self) -> float:
        """The part that is done, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def rate(self) -> float:
        """Units a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining(self) -> float:
        """Seconds left at this rate; infinite where that cannot be told."""
        return (self.total - self.done) / self.rate if self.total and self.rate else math.inf


Listener = Callable[[Progress], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def watching(listener: Listener) -> Iterator[None]:
    """Within the context `listener` hears of every stage, a few times a second."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def stage(part: str, total: float = 0.0, unit: str = "") -> Iterator[Advance]:
    """A stage of work. What it gives is called with the units done since the last call."""
    listener = _listener.get()
    if listener is None:
        yield _unheard
        return
    begin = time.monotonic()
    done, due, told = 0.0, begin + QUIET, False

    def advance(units: float) -> None:
        nonlocal done, due, told
        done += units
        now = time.monotonic()
        if now >= due:
            due, told = now + EVERY, True
            listener(Progress(part, done, total, unit, now - begin))

    yield advance
    if told:
        listener(Progress(part, max(done, total), total, unit, time.monotonic() - begin))


def watched(items: Sequence[T], part: str, unit: str) -> Iterator[T]:
    """The items, one after the other, as a stage of work."""
    with stage(part, len(items), unit) as advance:
        for number, item in enumerate(items, 1):
            yield item
            if number % OFTEN == 0:
                advance(OFTEN)


def _unheard(units: float) -> None:
    """Nobody listens."""
