"""Signals: the first SIGTERM or SIGINT asks the loop to end after its step, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interrupt:
    """A context in which a first signal is remembered in `received`, and a second has its usual effect."""

    def __init__(self) -> None:
        self.received: str | None = None
        self._usual: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Python lets only the main thread set handlers; elsewhere signals keep their usual effect.
        if threading.current_thread() is threading.main_thread():
            self._usual = {number: signal.signal(number, self._remember) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        if self.received is not None:
            self._restore()
            os.kill(os.getpid(), number)
        self.received = signal.Signals(number).name

    def _restore(self) -> None:
        for number, handler in self._usual.items():
            signal.signal(number, handler)
        self._usual = {}


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """A context in which SIGTERM ends the process the way an exception does, so that what must be cleared away is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)
