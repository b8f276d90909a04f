"""A line of questions for threads: short ones do not wait for long ones, nor one client for another.

How long a question will take nobody knows. So each computes for a moment at a time, and whoever has computed least
goes on, of the client that computes least. A question gives way where it asks whether it is still wanted
(serving/wanted.py), which a model does before each of its parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition

AT_ONCE, OF_ONE = 3, 2  # questions that compute at a time, and those of one client among them
BEGUN, BEGUN_OF_ONE = 8, 6  # questions that have begun and are kept in memory, and those of one client among them
MOMENT = 0.1  # seconds after which a question gives way to others
BETWEEN = 0.05  # seconds between two looks at whether a question that waits is still wanted


@dataclass(eq=False)
class Place:
    """A question in the line. is_gone: whether nobody waits for it any more.

    spent   seconds that it has computed. since: when it was let compute last.
    """

    client: str
    work: Callable[[Place], None]
    is_gone: Callable[[], bool]
    spent: float = 0.0
    since: float = 0.0


class Line:
    """waiting: questions that have not begun. begun: those in threads; computing: of these; standing: the others."""

    def __init__(self, name: str) -> None:
        self.pool = ThreadPoolExecutor(BEGUN, name)
        self.changed = Condition()
        self.waiting: list[Place] = []
        self.begun: list[Place] = []
        self.computing: list[Place] = []
        self.standing: list[Place] = []

    def submit(self, client: str, work: Callable[[Place], None], is_gone: Callable[[], bool]) -> None:
        """Do some work for a client when its turn comes, once it has been begun."""
        with self.changed:
            self.waiting.append(Place(client, work, is_gone))
            self._begin()

    def give_way(self, place: Place) -> None:
        """Let others compute, if there are any, where this question has computed for a moment."""
        if time.monotonic() - place.since < MOMENT or not self.standing:
            return
        with self.changed:
            self._leave(place)
            self._stand(place)

    def shutdown(self) -> None:
        self.pool.shutdown(cancel_futures=True)

    def _begin(self) -> None:
        """Begin what there is room for, of the client that has begun least."""
        while len(self.begun) < BEGUN:
            may = [place for place in self.waiting if _of(place, self.begun) < BEGUN_OF_ONE]
            if not may:
                return
            place = min(may, key=lambda one: _of(one, self.begun))
            self.waiting.remove(place)
            self.begun.append(place)
            self.pool.submit(self._done, place)

    def _done(self, place: Place) -> None:
        with self.changed:
            self._stand(place)
        try:
            place.work(place)
        finally:
            with self.changed:
                self._leave(place)
                self.begun.remove(place)
                self._begin()

    def _stand(self, place: Place) -> None:
        """Wait until it is the turn of a question."""
        self.standing.append(place)
        while self._next() is not place:
            self.changed.wait(BETWEEN)
        self.standing.remove(place)
        self.computing.append(place)
        place.since = time.monotonic()
        self.changed.notify_all()  # there may be room for another one

    def _leave(self, place: Place) -> None:
        self.computing.remove(place)
        place.spent += time.monotonic() - place.since
        self.changed.notify_all()

    def _next(self) -> Place | None:
        """Whose turn it is: who is not wanted any more ends at once, and then whoever has computed least."""
        may = [place for place in self.standing if _of(place, self.computing) < OF_ONE]
        if len(self.computing) >= AT_ONCE or not may:
            return None
        return min(may, key=lambda one: (not one.is_gone(), _of(one, self.computing), one.spent))


def _of(place: Place, places: list[Place]) -> int:
    """How many of these are of the same client."""
    return sum(one.client == place.client for one in places)
