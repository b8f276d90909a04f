"""The server's end of the pipe: the engine as a process, started again when it dies, and a mailbox for each request."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from regard.serving.http.errors import Error
from regard.serving.http.metrics import Metrics
from regard.serving.http.settings import Settings
from regard.serving.wire import HEAD, Message, module_command, packed

MOST_DEATHS, WITHIN = 5, 60.0  # restarts in so many seconds, beyond which there is no use in another
LOADED_IN = 60.0


class Mailbox:
    """Messages to one request. All that have come are taken together: tokens that are ready go out in one event."""

    def __init__(self) -> None:
        self.pending: list[Message] = []
        self.news = asyncio.Event()

    def put(self, message: Message) -> None:
        self.pending.append(message)
        self.news.set()

    async def take(self) -> list[Message]:
        await self.news.wait()
        self.news.clear()
        taken, self.pending = self.pending, []
        return taken


class EngineClient:
    """models, state: what the engine last said of its runs and of what they have to do.

    opens   the run that is loaded at once. failed: why runs could not be loaded when this was last tried.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.numbers = itertools.count(1)
        self.boxes: dict[int, Mailbox] = {}
        self.models: dict[str, dict[str, Any]] = {}
        self.state: dict[str, dict[str, int]] = {}
        self.opens = next(iter(settings.paths), "")
        self.failed: dict[str, str] = {}
        self.heard = 0.0
        self.deaths: list[float] = []
        self.process: asyncio.subprocess.Process | None = None
        self.first: asyncio.Future[str | None] | None = None
        self.reader: asyncio.Task[None] | None = None
        self.ends = False
        self.gave_up = asyncio.Event()

    @property
    def ready(self) -> bool:
        return bool(self.models) and self.process is not None and self.process.returncode is None and not self.ends

    async def start(self) -> None:
        """Start the process, which begins to load the first run."""
        self.first = asyncio.get_running_loop().create_future()
        await self._spawn()
        self.reader = asyncio.create_task(self._read())

    async def loaded(self) -> None:
        """Wait for the first run that can be loaded; raises where there is none."""
        errors: list[str] = []
        for name in self.settings.paths:
            if errors:
                self.opens, self.first = name, asyncio.get_running_loop().create_future()
                self.send({"do": "load", "run": name})
            assert self.first is not None
            async with asyncio.timeout(LOADED_IN):
                error = await self.first
            if error is None:
                return
            errors.append(error)
            if self.ends:
                break
        others = "; nor can any other be loaded" if len(errors) > 1 else ""
        raise Error(500, errors[0] + others)

    async def stop(self) -> None:
        """End the process: when its pipe is closed it leaves."""
        self.ends = True
        process = self.process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()
        if self.reader is not None:
            self.reader.cancel()

    def send(self, message: Message) -> None:
        if self.process is None or self.process.stdin is None or self.process.returncode is not None or self.ends:
            raise Error(503, "the engine is starting again: try in a moment", retry=2)
        self.process.stdin.write(packed(message))

    def submit(self, messages: Sequence[Message]) -> tuple[Mailbox, list[int]]:
        """Send requests that belong together; the mailbox of all, and their numbers."""
        box, numbers = Mailbox(), [next(self.numbers) for _ in messages]
        for number, message in zip(numbers, messages, strict=True):
            self.send(message | {"id": number})
            self.boxes[number] = box
        return box, numbers

    def forget(self, numbers: Sequence[int], cancel: bool) -> None:
        """Nobody reads these any more. cancel: they may be underway."""
        for number in numbers:
            self.boxes.pop(number, None)
            if cancel:
                with suppress(Error):
                    self.send({"do": "cancel", "id": number})

    async def _spawn(self) -> None:
        # With spinning threads, two of torch on two busy cores are many times slower than one.
        environment = {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ
        self.process = await asyncio.create_subprocess_exec(
            *module_command("regard.serving.engine.process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
        )
        self.send(self.settings.of_engine())
        self.send({"do": "load", "run": self.opens})

    async def _read(self) -> None:
        """What the engine says, for as long as there is one."""
        while not self.ends:
            assert self.process is not None
            assert self.process.stdout is not None
            stream = self.process.stdout
            try:
                while True:
                    size = int.from_bytes(await stream.readexactly(HEAD), "big")
                    self._take(json.loads(await stream.readexactly(size)))
            except (asyncio.IncompleteReadError, ConnectionError):
                if self.ends:
                    return
            await self._again()

    async def _again(self) -> None:
        """The engine has died: its requests are told so, and another one is started."""
        self.models, self.state = {}, {}
        boxes, self.boxes = self.boxes, {}
        for number, box in boxes.items():
            message = "the engine died while it worked on this; it is started again: try once more"
            box.put({"refused": number, "status": 503, "kind": "engine_died", "message": message})
        if self.first is not None and not self.first.done():
            self.first.set_result("the engine died before it had loaded the run; its log says why")
            self.ends = True
            return
        now = time.monotonic()
        self.deaths = [*(one for one in self.deaths if now - one < WITHIN), now]
        self.metrics.events["restarts"] += 1
        if len(self.deaths) > MOST_DEATHS:
            self.ends = True
            self.gave_up.set()
            return
        assert self.process is not None
        await self.process.wait()
        await self._spawn()

    def _take(self, message: Message) -> None:
        self.heard = time.monotonic()
        if "events" in message:
            for event in message["events"]:
                self._deliver(event[0], {"event": event})
        for name in ("begun", "echoed", "answer", "refused"):
            if name in message:
                self._deliver(message[name], message)
        if "models" in message:
            self.models = message["models"]
        if "state" in message:
            self.state = message["state"]
        if "loaded" in message:
            self._note_loaded(message["loaded"], message["error"])

    def _note_loaded(self, name: str, error: str | None) -> None:
        if error is None:
            self.failed.pop(name, None)
        else:
            self.failed[name] = error
        if name == self.opens and self.first is not None and not self.first.done():
            self.first.set_result(error)

    def _deliver(self, number: int, message: Message) -> None:
        box = self.boxes.get(number)
        if box is not None:
            box.put(message)
