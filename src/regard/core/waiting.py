"""Long calls into code that cannot be interrupted, made beside the main thread, so that Ctrl-C and SIGTERM are heard.

A signal is handled by the main thread between two instructions of Python; in the middle of a minute of compiled code it
waits for the minute's end. What is left running when a program ends is ended with it (`leave` in cli/main.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

TICK = 0.1  # seconds
T = TypeVar("T")


def interruptible(work: Callable[[], T]) -> T:
    """What `work` gives. A signal that raises leaves it to run on by itself, and what it gives is dropped."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    future, context = Future[T](), copy_context()

    def call() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(TICK)
    return future.result()


@contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads. A failure, or a signal that raises, does not wait for what they are at."""
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
