"""What a request waits for: a slot within one time, its end within another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from awaited import awaited

pytest.importorskip("starlette")

from regard.serving.http import answering
from regard.serving.http.answering import Underway, one_answer
from regard.serving.http.choices import Change, Choices
from regard.serving.http.client import EngineClient, Mailbox
from regard.serving.http.errors import Error
from regard.serving.http.metrics import Metrics
from regard.serving.http.settings import Settings
from regard.serving.wire import Message

BEGUN = {"begun": 1, "prompt_tokens": 1, "text": ""}
SOON, NEVER = 0.05, 3600.0  # seconds


class Engine(EngineClient):
    """A client of an engine that says nothing by itself."""

    def __init__(self) -> None:
        super().__init__(Settings({}), Metrics())
        self.cancelled: list[int] = []

    def send(self, message: Message) -> None:
        """Nobody is there to hear it."""

    def forget(self, numbers: Sequence[int], cancel: bool) -> None:
        self.cancelled += numbers if cancel else []


async def stays() -> Message:
    await asyncio.sleep(NEVER)
    return {}


async def leaves() -> Message:
    return {"type": "http.disconnect"}


def asked(
    seconds: float, then: Callable[[Underway], Awaitable[Any]], client: Callable[[], Awaitable[Message]] = stays
) -> Engine:
    """Ask for one text, do something with it while its client stays or leaves, and end it; the engine of it."""
    engine = Engine()

    async def run() -> None:
        under = Underway(engine, Mailbox(), [1], Choices([1], 1), None, seconds, {})  # pyright: ignore[reportArgumentType]
        under.watch(client)
        try:
            async with asyncio.timeout(10):
                await then(under)
        finally:
            under.close()

    awaited(run())
    return engine


@pytest.mark.parametrize(("start", "whole"), [(SOON, NEVER), (NEVER, SOON)])
def test_who_gets_no_slot_in_time_is_sent_away(monkeypatch: pytest.MonkeyPatch, start: float, whole: float) -> None:
    monkeypatch.setattr(answering, "STARTED_IN", start)

    async def waits(under: Underway) -> None:
        with pytest.raises(Error, match="all slots were taken") as found:
            await under.changes()
        assert found.value.status == 503
        assert int(found.value.headers["Retry-After"]) > 0

    assert asked(whole, waits).cancelled == [1]


def test_who_has_begun_may_go_on_to_the_end_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "STARTED_IN", SOON)

    async def cut(under: Underway) -> None:
        under.box.put(BEGUN)
        under.box.put({"event": [1, 0, " cat", 1, None, []]})
        assert await under.changes() == [Change(0, " cat", 1)]
        begun = asyncio.get_running_loop().time()
        assert await under.changes() == [Change(0, finish="timeout")]
        assert asyncio.get_running_loop().time() - begun > 2 * SOON

    engine = asked(6 * SOON, cut)
    assert engine.cancelled == [1]
    assert engine.metrics.events == {"timeout": 1}


async def refused(under: Underway) -> None:
    with pytest.raises(Error):
        await under.changes()


def test_only_a_client_that_leaves_has_cancelled() -> None:
    async def left(under: Underway) -> None:
        assert await under.changes() is None

    async def ends(under: Underway) -> None:
        under.box.put({"ends": True})
        await refused(under)

    assert asked(NEVER, left, leaves).metrics.events == {"cancelled": 1}
    assert asked(NEVER, ends).metrics.events == {}
    assert asked(SOON, refused).metrics.events == {}


def test_an_answer_that_is_not_there_when_the_server_ends_is_handed_back() -> None:
    """One that is there is given all the same."""
    engine = Engine()

    async def run(*told: Message) -> Any:
        asking = asyncio.ensure_future(one_answer(engine, {}, stays, NEVER))
        while not engine.boxes:
            await asyncio.sleep(0)
        box = engine.boxes.popitem()[1]
        for message in told:
            box.put(message)
        return await asking

    with pytest.raises(Error, match="the server is ending") as found:
        awaited(run({"ends": True}))
    assert (found.value.status, engine.cancelled) == (503, [1])
    assert int(found.value.headers["Retry-After"]) > 0
    assert awaited(run({"ends": True}, {"answer": 2, "value": 7})) == 7
    assert engine.cancelled == [1]
