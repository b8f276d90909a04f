"""Calls that cannot be interrupted leave the main thread free to hear a signal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from regard.core.waiting import interruptible, threads
from regard.data.tokenizer import train_tokenizer

LIMIT = 60


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_what_the_work_gives_or_raises_comes_back_and_it_sees_the_context():
    word = ContextVar("word", default="none")
    word.set("heard")
    assert interruptible(word.get) == "heard"
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


def test_ctrl_c_does_not_wait_for_the_work():
    end, ended = threading.Event(), threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        end.wait(LIMIT)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        interruptible(work)
    assert not ended.is_set()
    end.set()
    assert ended.wait(LIMIT)


def test_a_failure_does_not_wait_for_threads_that_are_at_work():
    end, tasks = threading.Event(), []

    def work() -> None:
        with threads(1) as pool:
            tasks.extend(pool.submit(end.wait, LIMIT) for _ in range(2))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    running, waiting = tasks
    assert not running.done()
    assert waiting.cancelled()
    end.set()
    assert running.result(LIMIT)


def test_bpe_is_trained_beside_the_main_thread():
    seen = []

    def texts() -> Iterator[str]:
        seen.append(threading.current_thread())
        yield "the cat sat on the mat"

    assert train_tokenizer("bpe", texts(), vocab_size=260).encode("the cat").size
    assert seen
    assert threading.main_thread() not in seen
