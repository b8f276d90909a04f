"""Wanted: whether the answer to a question is still waited for, asked again and again while it is computed.

A computation cannot be broken off from outside without leaving a model half listened to. It ends by itself instead:
every part of a model that is about to run asks `check`, which raises where the time is up or nobody listens any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regard.serving.guard import Refused

if TYPE_CHECKING:
    from torch import nn

LONGEST = 30.0  # seconds of an answer, what it waits for others included
SHORTER = "give a shorter text"
BETWEEN = 0.05  # seconds between two looks at the connection


@dataclass
class Wanted:
    """is_gone  whether the one who asked has left.
    seconds  that the answer may take. instead: what to ask for where it takes longer.
    give_way  lets others compute for a while.
    """

    is_gone: Callable[[], bool]
    seconds: float = LONGEST
    instead: str = SHORTER
    give_way: Callable[[], None] = lambda: None
    begun: float = field(default_factory=time.monotonic)
    looked: float = 0.0

    def check(self) -> None:
        self.give_way()
        now = time.monotonic()
        if now - self.begun > self.seconds:
            raise Refused(503, f"this takes longer than {self.seconds:g} seconds and was stopped: {self.instead}")
        if now - self.looked > BETWEEN:
            self.looked = now
            if self.is_gone():
                raise ConnectionAbortedError("nobody waits for the answer any more")


_current: ContextVar[Wanted | None] = ContextVar("wanted", default=None)


@contextmanager
def answering(wanted: Wanted) -> Iterator[None]:
    """What is computed inside is computed for `wanted`."""
    token = _current.set(wanted)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Go on, or raise where the answer that is being computed is not wanted any more."""
    wanted = _current.get()
    if wanted is not None:
        wanted.check()


def watched(model: nn.Module) -> None:
    """Make every part of a model ask before it runs whether it is still wanted."""
    for part in model.modules():
        part.register_forward_pre_hook(_Asks())


class _Asks:
    is_bystander = True  # it looks at nothing that a part is given

    def __call__(self, _module: nn.Module, _inputs: object) -> None:
        check()
