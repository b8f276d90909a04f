"""Questions in a line for threads: who computes, and who waits for whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from regard.serving.engine import line as lines
from regard.serving.engine.line import BEGUN, BEGUN_OF_ONE, OF_ONE, Line, Place

LATE = 60.0  # seconds that anything is waited for


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setattr(lines, "MOMENT", 0.001)
    found = Line("test")
    yield found
    found.shutdown()


class Work:
    """A question that computes until it is let end, or alone until then. gone: whether nobody waits for it."""

    def __init__(self, line: Line, client: str, *, gives_way: bool = True) -> None:
        self.line, self.gives_way = line, gives_way
        self.begun, self.end, self.done, self.gone = Event(), Event(), Event(), Event()
        line.submit(client, self, self.gone.is_set)

    def __call__(self, place: Place) -> None:
        self.begun.set()
        if self.gives_way:
            while not self.end.wait(0.0001) and not self.gone.is_set():
                self.line.give_way(place)
        else:
            assert self.end.wait(LATE)
        self.done.set()


def until(is_so: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < LATE
        time.sleep(0.001)


def ended(works: list[Work]) -> None:
    for work in works:
        work.end.set()
    assert all(work.done.wait(LATE) for work in works)


def test_a_short_question_is_done_beside_long_ones_of_the_same_client(line: Line) -> None:
    long = [Work(line, "a") for _ in range(BEGUN_OF_ONE - 1)]
    assert all(work.begun.wait(LATE) for work in long)
    ended([Work(line, "a")])
    assert not any(work.done.is_set() for work in long)
    ended(long)


def test_one_client_leaves_room_for_another_be_it_that_its_questions_never_give_way(line: Line) -> None:
    long = [Work(line, "a", gives_way=False) for _ in range(2 * BEGUN)]
    until(lambda: sum(work.begun.is_set() for work in long) == OF_ONE)
    ended([Work(line, "b", gives_way=False)])
    assert sum(work.begun.is_set() for work in long) == OF_ONE
    ended(long)


def test_what_has_begun_is_bounded_and_what_waits_begins_in_its_turn(line: Line) -> None:
    works = [Work(line, client) for client in "aaaaaaaabbbbbbbb"]
    assert len(line.begun) == BEGUN
    assert {client: sum(place.client == client for place in line.begun) for client in "ab"} == {"a": 6, "b": 2}
    ended(works)
    assert not line.waiting


def test_who_is_not_wanted_any_more_is_let_go_on_to_its_end(line: Line) -> None:
    works = [Work(line, "a") for _ in range(5)]
    assert all(work.begun.wait(LATE) for work in works)
    works[0].gone.set()
    assert works[0].done.wait(LATE)
    ended(works[1:])


def test_a_question_that_fails_leaves_its_place(line: Line) -> None:
    def fails(_place: Place) -> None:
        raise RuntimeError

    for _ in range(2 * BEGUN):
        line.submit("a", fails, lambda: False)
    ended([Work(line, "a")])
