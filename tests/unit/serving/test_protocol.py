"""Connections of a server: which of them are cut, when there are too many and where nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from awaited import awaited

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

import uvicorn
from starlette.responses import Response

from regard.serving.http import protocol
from regard.serving.http.protocol import Deadlined

LATE = 60.0  # seconds that anything is waited for
LONG = 1 << 24  # bytes of an answer, of which the system keeps a part
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Served:
    """An application that answers every path at once, but /waits, which it answers when it is told to."""

    port: int = 0
    waits: int = 0
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/waits":
            self.waits += 1
            await self.go_on.wait()
        content = b"told" if scope["path"] != "/long" else bytes(LONG) + b"told"
        await Response(content)(scope, receive, send)

    async def line(self) -> Line:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def asking(self, path: str) -> Line:
        line = await self.line()
        ask(line, path)
        return line


def ask(line: Line, path: str) -> None:
    line[1].write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


async def answer(line: Line) -> bytes:
    """What has come up to the end of one answer; nothing where the connection was cut."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        return await line[0].readuntil(b"told")
    return b""


async def is_cut(line: Line) -> bool:
    """Wait until the connection ends; whether nothing had come over it."""
    with suppress(ConnectionError):
        return await line[0].read() == b""
    return True


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(kind: type[Deadlined]) -> AsyncIterator[Served]:
    app = Served()
    config = uvicorn.Config(app, port=0, http=kind, ws="none", lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # pyright: ignore[reportAttributeAccessIssue]
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    app.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(LATE):
            yield app
    finally:
        server.force_exit = True
        await server.shutdown()


def told(question: Callable[[Served], Awaitable[Any]], kind: type[Deadlined]) -> Any:
    async def run() -> Any:
        async with serving(kind) as app:
            return await question(app)

    return awaited(run())


class Watched(Deadlined):
    """One whose reader is looked at when the test says so, and not by the clock. left: what it had not taken before."""

    all: ClassVar[list[Watched]] = []
    left = 0

    def pause_writing(self) -> None:
        self.all.append(self)
        super().pause_writing()

    def _wait_for_reader(self) -> None:
        self.left = self._left()

    def look(self) -> None:
        self._look_at_reader(self.left)

    def has_taken(self) -> bool:
        return self.left - self._left() >= protocol.LEAST


async def behind(app: Served) -> tuple[Line, Watched]:
    """A connection whose reader has asked for a long answer and taken its first bytes."""
    Watched.all.clear()
    line = await app.asking("/long")
    await line[0].readline()
    await until(lambda: bool(Watched.all))
    return line, Watched.all[-1]


def test_who_reads_is_not_cut_however_long_it_takes_and_who_does_not_is() -> None:
    async def question(app: Served) -> None:
        line, other = await behind(app)
        for _ in range(4):
            await line[0].readexactly(LONG // 8)
            await until(other.has_taken)
            other.look()
        assert not other.transport.is_closing()
        other.look()
        assert other.transport.is_closing()

    told(question, Watched)


def test_who_has_caught_up_is_looked_at_no_more() -> None:
    async def question(app: Served) -> None:
        line, other = await behind(app)
        count, piece = 0, b""
        while not piece.endswith(b"told"):
            piece = await line[0].read(1 << 20)
            count += len(piece)
        assert LONG < count < LONG + 1000
        assert other.behind is None
        ask(line, "/told")
        assert await answer(line)

    told(question, Watched)


class Few(Deadlined):
    """So few that the fourth makes another one go."""

    most = 3


def test_who_says_nothing_keeps_nobody_out_and_nobody_is_cut_while_it_is_answered() -> None:
    async def question(app: Served) -> None:
        waiting = await app.asking("/waits")
        await until(lambda: app.waits == 1)
        silent = [await app.line() for _ in range(20)]
        half = await app.line()
        half[1].write(b"GET /half HTTP/1.1\r\n")
        for _ in range(5):
            assert await answer(await app.asking("/told"))
        assert all([await is_cut(line) for line in (*silent, half)])
        app.go_on.set()
        assert await answer(waiting)

    told(question, Few)


def test_the_connection_that_was_answered_last_stays_longest() -> None:
    async def question(app: Served) -> None:
        kept = await app.asking("/told")
        assert await answer(kept)
        older = [await app.line(), await app.line()]
        ask(kept, "/told")
        assert await answer(kept)
        assert all([await answer(await app.asking("/told")) for _ in older])
        assert all([await is_cut(line) for line in older])
        ask(kept, "/told")
        assert await answer(kept)

    told(question, Few)


def test_where_all_are_being_answered_the_newest_is_cut() -> None:
    async def question(app: Served) -> None:
        waiting = [await app.asking("/waits") for _ in range(Few.most)]
        await until(lambda: app.waits == Few.most)
        assert await is_cut(await app.line())
        app.go_on.set()
        assert all([await answer(line) for line in waiting])

    told(question, Few)


def test_there_are_no_more_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else none would be taken from then on, and none cut in favour of it."""
    resource = pytest.importorskip("resource")
    limits = {"soft": 256, "hard": 900}
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (limits["soft"], limits["hard"]))
    monkeypatch.setattr(resource, "setrlimit", lambda _kind, both: limits.update(soft=both[0]))
    assert protocol.connections_at_once() == 900 - protocol.OTHER_FILES
    assert limits["soft"] == 900
    limits.update(soft=256, hard=1 << 20)
    assert protocol.connections_at_once() == protocol.MOST
    assert limits["soft"] == protocol.MOST + protocol.OTHER_FILES
