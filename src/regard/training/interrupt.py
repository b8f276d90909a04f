"""Signals: the first asks the loop to end after its step, the second ends the process at once.

A signal that the process was started to ignore stays ignored (Ctrl-C of a job in the background, a hang-up under
nohup); the others end it all the same.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, Self, TypeVar

T = TypeVar("T")

# A request to end, Ctrl-C, the terminal or the connection that is gone, and Ctrl-Break; Windows has no third one, and
# other systems no fourth.
NAMES = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")
SIGNALS = tuple(signal.Signals[name] for name in NAMES if hasattr(signal, name))


class Interrupted(BaseException):
    """Raised by a signal in the work of `Interrupt.at_once`; no `except Exception` may take it for a failure."""


class Interrupt:
    """A context in which a first signal is remembered in `received`, and a second has its usual effect.

    Inside another one, as a training is in a comparison, the two share what was received.
    """

    def __init__(self) -> None:
        self.received: str | None = None
        self._usual: dict[int, Any] = {}
        self._raises = False
        self._around: Interrupt | None = None

    def __enter__(self) -> Self:
        self._usual = {number: signal.signal(number, self._remember) for number in heeded()}
        around = (getattr(handler, "__self__", None) for handler in self._usual.values())
        self._around = next((one for one in around if isinstance(one, Interrupt)), None)
        if self._around is not None:
            self.received = self._around.received
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def at_once(self, work: Callable[[], T]) -> T | None:
        """What `work` gives; None where a signal had come or comes meanwhile, which leaves it in the middle.

        For work that may be dropped. What must be put back afterwards is put back outside of it.
        """
        try:
            self._raises = True
            return None if self.received is not None else work()
        except Interrupted:
            return None
        finally:
            self._raises = False

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            self._restore()
            signal.raise_signal(number)
        self.received = signal.Signals(number).name
        if self._around is not None:
            # One signal, whoever asks for it first; the second then ends the process through all of them.
            self._around._remember(number, frame)
        if self._raises:
            self._raises = False
            raise Interrupted

    def _restore(self) -> None:
        for number, handler in self._usual.items():
            signal.signal(number, handler)
        self._usual = {}


@contextmanager
def ended_by_exception() -> Iterator[None]:
    """A context in which SIGTERM and SIGHUP end the process the way an exception does, as Ctrl-C does by itself.

    What must be cleared away then is. The exit code is the shell's for the signal: 143 and 129. A signal that somebody
    else heeds, as a comparison does, is left to them.
    """
    free = (number for number in heeded() if signal.getsignal(number) == signal.SIG_DFL)
    usual = {number: signal.signal(number, _leave) for number in free}
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def heeded() -> list[signal.Signals]:
    """The signals that may be given a handler here: not those that the process ignores or that other code handles.

    Python lets only the main thread set handlers; elsewhere signals keep their usual effect.
    """
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
