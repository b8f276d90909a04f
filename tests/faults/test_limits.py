"""The tests themselves never hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from limits import AGAIN, LIMIT, default_signals


def soon(wait: Callable[[], object]) -> None:
    """Wait, with an alarm at hand. One that comes in the moment before a wait does not end it; the next one does."""
    signal.setitimer(signal.ITIMER_REAL, 0.05, 2)
    wait()


@pytest.mark.parametrize("wait", [lambda: threading.Event().wait(LIMIT), lambda: os.read(os.pipe()[0], 1)])
def test_a_test_that_waits_for_ever_fails_by_its_limit(wait):
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= LIMIT
    with pytest.raises(pytest.fail.Exception, match=f"took more than {LIMIT} seconds"):
        soon(wait)
    signal.setitimer(signal.ITIMER_REAL, LIMIT, AGAIN)


def test_children_have_the_signals_of_a_terminal_whatever_the_tests_were_started_with():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        default_signals()
        program = "import signal; print(*(signal.getsignal(n) == signal.SIG_IGN for n in (2, 15, 1)))"
        told = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=LIMIT, check=True).stdout
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert told == b"False False False\n"
