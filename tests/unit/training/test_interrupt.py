"""What signals do to a run, and which are left alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from regard.training.interrupt import SIGNALS, Interrupt, ended_by_exception


@pytest.fixture(autouse=True)
def _default_signals() -> Iterator[None]:
    """What a process at a terminal begins with, whatever the tests were started with."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(*numbers: signal.Signals) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_first_signal_is_remembered_and_the_handlers_are_put_back(number: signal.Signals):
    before = signal.getsignal(number)
    with Interrupt() as interrupt:
        os.kill(os.getpid(), number)
        assert interrupt.received == number.name
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("ignored", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_at_the_start_stays_ignored_and_sigterm_is_heeded(ignored: signal.Signals):
    signal.signal(ignored, signal.SIG_IGN)
    with Interrupt() as interrupt:
        os.kill(os.getpid(), ignored)
        assert interrupt.received is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.received == "SIGTERM"
    with pytest.raises(SystemExit) as left, ended_by_exception():
        send(ignored, signal.SIGTERM)
    assert left.value.code == 143
    assert signal.getsignal(ignored) is signal.SIG_IGN


def test_work_that_may_be_dropped_is_left_in_the_middle():
    done = []

    def work() -> str:
        done.append("begun")
        os.kill(os.getpid(), signal.SIGINT)
        done.append("went on")
        return "whole"

    with Interrupt() as interrupt:
        assert interrupt.at_once(lambda: "whole") == "whole"
        assert interrupt.at_once(work) is None
        assert interrupt.at_once(work) is None
        assert interrupt.received == "SIGINT"
    assert done == ["begun"]


def test_a_hang_up_ends_a_program_with_the_code_of_the_shell():
    with pytest.raises(SystemExit) as left, ended_by_exception():
        os.kill(os.getpid(), signal.SIGHUP)
    assert left.value.code == 129
