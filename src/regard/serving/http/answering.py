"""From a request for texts to its answer, whole or as a stream: within its time, and no longer than somebody waits."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from regard.serving.http.choices import Change, Choices, gather
from regard.serving.http.client import EngineClient, Mailbox
from regard.serving.http.errors import JSON, Error, ending, error_object
from regard.serving.http.form import Form
from regard.serving.http.metrics import Metrics
from regard.serving.wire import Message

STARTED_IN = 60.0  # seconds within which a request has a slot and its first token, or is handed back

Facts = dict[str, Any]
CONTROLS = frozenset({"left", "unstarted", "late", "ends"})


@dataclass
class Underway:
    """A request that the engine works on. facts: what its line in the log says. left: whether its client has.

    Whatever it has to wait for comes into its mailbox: tokens, that the client has left, that the time is up, that the
    server ends. So an event costs one wait.
    """

    engine: EngineClient
    box: Mailbox
    numbers: list[int]
    choices: Choices
    form: Form
    seconds: float
    facts: Facts
    begun: float = field(default_factory=time.monotonic)
    last: dict[int, float] = field(default_factory=dict)
    noted: list[Message] = field(default_factory=list)
    left: bool = False
    watching: list[asyncio.Task[None] | asyncio.TimerHandle] = field(default_factory=list)

    def watch(self, receive: Receive) -> None:
        """Hear from now on when the client leaves, and when it has taken too long."""
        loop, put = asyncio.get_running_loop(), self.box.put
        gone = asyncio.ensure_future(until_gone(receive))
        gone.add_done_callback(lambda _: put({"left": True}))
        start, whole = ({"unstarted": True}, STARTED_IN), ({"late": True}, self.seconds)
        self.watching = [gone, *(loop.call_later(after, put, message) for message, after in (start, whole))]

    async def changes(self) -> list[Change] | None:
        """What came next; None when nobody waits for it any more."""
        while True:
            if not self.noted:
                self.noted = await self.box.take()
            told = [message for message in self.noted if not CONTROLS & message.keys()]
            if told:
                self.noted = [message for message in self.noted if CONTROLS & message.keys()]
                return self._noted(self.choices.take(told))
            control = self.noted.pop(0)
            if "left" in control:
                self.left = True
                return None
            if "ends" in control:
                raise ending()
            if not self.choices.started:
                raise Error(503, "all slots were taken for too long: try again later", retry=10)
            if "late" in control:
                return self._cut()

    @property
    def metrics(self) -> Metrics:
        return self.engine.metrics

    def _cut(self) -> list[Change]:
        """The end of what is not done when its time is up."""
        self.metrics.events["timeout"] += 1
        self.engine.forget(self.numbers, cancel=True)  # else it would write on, in slots that others wait for
        return self.choices.cut("timeout")

    def _noted(self, changes: list[Change]) -> list[Change]:
        """The same; how long they took is counted."""
        now = time.monotonic()
        for change in changes:
            if change.tokens and change.index in self.last:
                gap = (now - self.last[change.index]) / change.tokens
                self.metrics.between_tokens.add(gap, change.tokens)
            elif change.tokens:
                self.metrics.first_token.add(now - self.begun)
                self.facts.setdefault("first_token_ms", round(1000 * (now - self.begun), 2))
            if change.tokens or change.finish:
                self.last[change.index] = now
        return changes

    def close(self) -> None:
        """Nobody reads on: what is not done is cancelled."""
        for one in self.watching:
            one.cancel()
        done = self.choices.done
        self.engine.forget(self.numbers, cancel=not done)
        if self.left:
            self.metrics.events["cancelled"] += 1
            self.facts["cancelled"] = True
        for kind in ("prompt", "completion"):
            count = self.choices.usage()[f"{kind}_tokens"]
            self.metrics.tokens[kind] += count
            self.facts[f"{kind}_tokens"] = count


async def until_gone(receive: Callable[[], Awaitable[Any]]) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Whole(Response):
    """The answer at once."""

    def __init__(self, underway: Underway) -> None:
        super().__init__()
        self.underway = underway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        under = self.underway
        under.watch(receive)
        texts: dict[int, Change] = {}
        try:
            while not under.choices.done:
                changes = await under.changes()
                if changes is None:
                    return
                gather(texts, changes)
            ordered = [texts[index] for index in sorted(texts)]
            content = json.dumps(under.form.whole(ordered, under.choices.usage())).encode()
        finally:
            under.close()
        await Response(content, media_type=JSON)(scope, receive, send)


class Stream(Response):
    """The answer as events, each with all that was ready. with_usage: whether the last one counts tokens."""

    def __init__(self, underway: Underway, with_usage: bool) -> None:
        super().__init__()
        self.underway, self.with_usage = underway, with_usage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        under = self.underway
        under.watch(receive)
        try:
            # What is refused at once is told by a status.
            first = await under.changes()
            if first is None:
                return
            await send(_start())
            try:
                is_heard = await self._tell(send, first)
            except Error as error:
                await self._send(send, error_object(error.status, str(error), error.param, error.code))
                is_heard = True
            if is_heard:
                await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})
        finally:
            under.close()

    async def _tell(self, send: Send, changes: list[Change] | None) -> bool:
        """All chunks; whether there was somebody to the end."""
        under = self.underway
        for chunk in under.form.head():
            await self._send(send, chunk)
        while changes is not None:
            content = b"".join(_event(self._chunk(change)) for change in changes)
            if content:
                await send({"type": "http.response.body", "body": content, "more_body": True})
            if under.choices.done:
                break
            changes = await under.changes()
        if self.with_usage and under.choices.done:
            await self._send(send, under.form.usage_chunk(under.choices.usage()))
        return changes is not None

    def _chunk(self, change: Change) -> dict[str, Any]:
        return self.underway.form.chunk(change) | ({"usage": None} if self.with_usage else {})

    @staticmethod
    async def _send(send: Send, chunk: dict[str, Any]) -> None:
        await send({"type": "http.response.body", "body": _event(chunk), "more_body": True})


async def one_answer(
    engine: EngineClient, message: Message, receive: Callable[[], Awaitable[Any]], seconds: float
) -> Any:
    """What the engine answers to a single question."""
    box, numbers = engine.submit([message])
    gone, taking = asyncio.ensure_future(until_gone(receive)), asyncio.ensure_future(box.take())
    done = False
    try:
        await asyncio.wait({taking, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not taking.done():
            if gone.done():
                raise ConnectionAbortedError("the client has left")
            raise Error(503, f"this takes longer than {seconds:g} seconds: ask for less", retry=10)
        found = next((one for one in taking.result() if "ends" not in one), None)
        if found is None:
            raise ending()
        done = True
        if "refused" in found:
            retry = 2 if found["status"] == 503 else None
            raise Error(found["status"], found["message"], code=found.get("kind"), retry=retry)
        return found["value"]
    finally:
        engine.forget(numbers, cancel=not done)
        for task in (gone, taking):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _start() -> dict[str, Any]:
    headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
