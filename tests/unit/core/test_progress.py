"""Progress: heard by whoever listens, with a rate and a time left, and free where nobody does."""

from __future__ import annotations

import math

import pytest

from regard.core import progress
from regard.core.progress import Progress, stage, watching


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_stage_tells_how_much_is_done_how_fast_and_how_long_it_will_take(clock: list[float]) -> None:
    heard: list[Progress] = []
    with watching(heard.append), stage("reading", total=100, unit="bytes") as advance:
        clock[0] += 2.0
        advance(20)
    first, last = heard
    assert (first.part, first.unit, first.share, first.rate, first.remaining) == ("reading", "bytes", 0.2, 10.0, 8.0)
    assert last.share == 1.0


def test_work_that_is_over_at_once_says_nothing(clock: list[float]) -> None:
    heard: list[Progress] = []
    with watching(heard.append), stage("reading", total=100) as advance:
        advance(100)
    assert heard == []


def test_words_come_a_few_times_a_second_however_small_the_steps(clock: list[float]) -> None:
    heard: list[Progress] = []
    with watching(heard.append), stage("reading", total=1000) as advance:
        for _ in range(1000):
            clock[0] += 0.001
            advance(1)
    assert 5 <= len(heard) <= 11


def test_after_the_context_nobody_listens(clock: list[float]) -> None:
    heard: list[Progress] = []
    with watching(heard.append):
        pass
    with stage("reading", total=10) as advance:
        clock[0] += 5.0
        advance(1)
    assert heard == []


def test_what_nobody_can_know_is_not_guessed() -> None:
    assert Progress("reading", 5.0, 0.0, "lines", 1.0).remaining == math.inf
    assert Progress("reading", 0.0, 9.0, "lines", 0.0).rate == 0.0
