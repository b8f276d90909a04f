"""What keeps the tests from waiting for ever: the signals of a terminal, and a limit on every test."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# Seconds that a test may take: several times the slowest on a loaded machine of two cores.
LIMIT, SLOW_LIMIT = 240, 600
# A test that reached its limit is reminded every few seconds: what clears away after it may wait as long, and an alarm
# in the moment before a wait does not end it. One that hears nothing, deep in compiled code, ends the whole process.
AGAIN, DEAF = 10, 60


def default_signals() -> None:
    """Heed what a program at a terminal heeds.

    A runner, nohup or `&` in a script leaves some signals ignored, and children inherit that: one that only Ctrl-C ends
    would never end.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@contextmanager
def limited(seconds: float, stderr: int) -> Iterator[None]:
    """A block that fails when it takes longer. stderr: the descriptor for the stacks of one that hears nothing."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail(f"took more than {seconds:g} seconds"))
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    faulthandler.dump_traceback_later(seconds + DEAF, exit=True, file=stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
