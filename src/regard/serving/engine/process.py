"""The engine as a process: `python -m regard.serving.engine.process`, told by its first message what it serves.

One thread reads what comes. The main one takes all of it between two steps, so that whoever leaves is gone with the
next step, and sends what a step drew as one message. It ends when its pipe does.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO

from regard.errors import RegardError
from regard.serving.wire import Message, Outbox, messages

if TYPE_CHECKING:
    from regard.serving.engine.room import Room

BETWEEN = 0.5  # seconds between two reports of how much there is to do


class EngineProcess:
    """The main loop. preparing: requests of which something is made before they are submitted, and still wanted."""

    def __init__(self, begins: Message, outbox: Outbox) -> None:
        import torch

        from regard.serving.engine.line import BEGUN
        from regard.serving.engine.rooms import Rooms
        from regard.serving.engine.side import Side
        from regard.serving.engine.sizing import Sizes
        from regard.serving.provider import RunProvider

        if begins["threads"]:
            torch.set_num_threads(begins["threads"])
        for module in begins["plugins"]:
            importlib.import_module(module)
        self.inbox: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.outbox = outbox
        self.preparing: set[int] = set()
        paths = {name: Path(path) for name, path in begins["paths"].items()}
        sizes = Sizes(begins["memory"], begins["slots"], begins["chunk"], begins["precision"])
        self.rooms = Rooms(paths, sizes, begins["device"], begins["idle"], self.inbox.put)
        provider = RunProvider(lambda: paths, begins["device"], self.rooms.twin, copies=BEGUN)
        self.side, self.rooms.pool = Side(provider, outbox.send), provider.pool
        self.acts: dict[str, Callable[[dict[str, Any]], list[Message]]] = {
            "submit": self._submit,
            "prepared": self._prepared,
            "cancel": self._cancel,
            "work": self._work,
            "load": self._load,
            "loaded": self._loaded,
            "twin": self._lend,
            "ready": lambda message: [{"told": message["id"], "models": self.rooms.about()}],
        }

    def run(self, stream: BinaryIO) -> None:
        Thread(target=self._read, args=(stream,), daemon=True).start()
        reported = 0.0
        while self.turn():
            if time.monotonic() - reported > BETWEEN:
                reported = time.monotonic()
                self.rooms.let_go()
                self.outbox.send({"state": self.rooms.state(), "models": self.rooms.about()})

    def turn(self) -> bool:
        """Do what has come, and then a step of all that is underway; whether there will be another turn."""
        for message in self._taken(wait=not self.rooms.busy):
            if message is None:
                return False
            for told in self.acts[message["do"]](message):
                self.outbox.send(told)
        for told in self.rooms.step():
            self.outbox.send(told)
        return True

    def _taken(self, wait: bool) -> list[dict[str, Any] | None]:
        """All that has come; where there is nothing else to do, waited for a while."""
        found: list[dict[str, Any] | None] = []
        with contextlib.suppress(Empty):
            if wait:
                found.append(self.inbox.get(timeout=BETWEEN))
            while True:
                found.append(self.inbox.get_nowait())
        return found

    def _read(self, stream: BinaryIO) -> None:
        for message in messages(stream):
            self.inbox.put(message)
        self.inbox.put(None)

    def _submit(self, message: dict[str, Any]) -> list[Message]:
        from regard.serving.engine.ask import Ask, refusal

        try:
            ask = Ask.of(message)
        except (RegardError, ValueError, TypeError) as error:
            return [refusal(message["id"], error)]
        if ask.is_ready:
            return self.rooms.submit(ask)
        self.preparing.add(ask.number)
        self._begin_to_prepare(message)
        return []

    def _begin_to_prepare(self, message: dict[str, Any]) -> None:
        room = self.rooms.open.get(message["run"])
        if room is None:
            self.rooms.when_loaded(message["run"], message)
        else:
            self.side.prepare(message, lambda: self._prepare(message, room))

    def _prepare(self, message: dict[str, Any], room: Room) -> None:
        """What takes a while and concerns nobody else, in a thread: turns become a text, a pattern an automaton."""
        from regard.serving.engine.side import rendered

        ready: dict[str, Any] = {}
        if message.get("messages") is not None:
            ready["prompt"] = rendered(room.run, message["messages"])
        if message.get("pattern") is not None:
            ready["form"] = room.form(message["pattern"], message.get("messages") is not None)
        self.inbox.put({"do": "prepared", "message": message, "ready": ready, "room": room})

    def _prepared(self, told: dict[str, Any]) -> list[Message]:
        """Submit a request that is ready now, unless its client has left."""
        from regard.serving.engine.ask import Ask

        message = told["message"]
        if message["id"] not in self.preparing:
            return []
        if told["room"] is not self.rooms.open.get(message["run"]):
            self._begin_to_prepare(message)  # the run was let go of or written anew, and may have other tokens
            return []
        self.preparing.discard(message["id"])
        return self.rooms.submit(Ask.of(message | told["ready"]))

    def _cancel(self, message: dict[str, Any]) -> list[Message]:
        self.preparing.discard(message["id"])
        self.rooms.cancel(message["id"])
        self.side.cancel(message["id"])
        return []

    def _work(self, message: dict[str, Any]) -> list[Message]:
        self.side.ask(message)
        return []

    def _load(self, message: dict[str, Any]) -> list[Message]:
        self.rooms.begin(message["run"])
        return []

    def _lend(self, message: dict[str, Any]) -> list[Message]:
        self.rooms.lend(message["run"], message["promise"])
        return []

    def _loaded(self, message: dict[str, Any]) -> list[Message]:
        found = self.rooms.loaded(message["run"], message["room"], message["spare"], message["error"])
        for later in self.rooms.later.pop(message["run"], []):
            found += self.acts[later["do"]](later)
        error = message["error"]
        told = str(error) if isinstance(error, RegardError) else error and f"{type(error).__name__}: {error}"
        return [{"loaded": message["run"], "error": told, "models": self.rooms.about()}, *found]


def main() -> None:
    """Serve until the pipe ends. What anything prints goes to the log and not into the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who is at the keyboard ends the server, which ends this process
    stream, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    begins = next(messages(stream), None)
    if begins is not None:
        with contextlib.suppress(BrokenPipeError):
            EngineProcess(begins, Outbox(out)).run(stream)
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(0)  # threads may be inside torch, and cannot be waited for


if __name__ == "__main__":
    main()
