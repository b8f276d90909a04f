"""The loop of the engine, turn by turn in this process: what comes over its pipe, and what it says."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from look_run import TOKENIZER, text_run
from regard.data.tokenizer.word import WordTokenizer
from regard.run.run import Run
from regard.serving.engine import process, rooms
from regard.serving.engine.process import EngineProcess
from regard.serving.wire import Message
from regard.tasks.text import TextProcessor

LATE = 60.0  # seconds that anything is waited for
PLAIN = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
COMPLETION: Message = {
    "do": "submit",
    "run": "a",
    "prompt": "the",
    "n": 1,
    "max_tokens": 3,
    "seed": 1,
    "logprobs": None,
    "echo": False,
    "stop": [],
    "bias": {},
    "presence": 0.0,
    "frequency": 0.0,
    "sampling": {"temperature": 1.0},
}


class Told(list[Message]):
    """What the engine has said."""

    def send(self, message: Message) -> None:
        self.append(message)

    def of(self, kind: str, number: int) -> list[Message]:
        """Messages of a kind about a request."""
        return [message for message in self if message.get(kind) == number]

    def finished(self, number: int) -> bool:
        """Whether a text of a request has come to its end."""
        events = [event for message in self for event in message.get("events", [])]
        return any(event[0] == number and event[4] is not None for event in events)


class Served:
    """An engine whose runs come from memory. loads: how often each was loaded."""

    def __init__(self, engine: EngineProcess, told: Told, loads: list[str]) -> None:
        self.engine, self.told, self.loads = engine, told, loads

    def ask(self, number: int, **more: Any) -> None:
        self.engine.inbox.put(COMPLETION | {"id": number} | more)

    def until(self, is_so: Callable[[], bool]) -> None:
        begun = time.monotonic()
        while not is_so():
            assert time.monotonic() - begun < LATE
            self.engine.turn()


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """An engine that serves runs by their names."""
    monkeypatch.setattr(process, "BETWEEN", 0.02)
    engines: list[EngineProcess] = []

    def served(runs: dict[str, Run], **more: Any) -> Served:
        loads: list[str] = []

        def load(path: Path, device: str) -> Run:
            loads.append(path.name)
            own = copy.copy(runs[path.name])
            own.model, own.path = copy.deepcopy(own.model), path
            return own

        monkeypatch.setattr(rooms, "load", load)
        for name in runs:
            (tmp_path / name).mkdir()
            (tmp_path / name / "config.json").write_text("{}", encoding="utf-8")
        begins = {"threads": 0, "plugins": [], "paths": {name: str(tmp_path / name) for name in runs}, "memory": None}
        begins |= {"slots": 2, "chunk": 256, "precision": None, "device": "cpu", "idle": 3600.0}
        told = Told()
        engines.append(EngineProcess(begins | more, told))  # pyright: ignore[reportArgumentType]
        return Served(engines[-1], told, loads)

    yield served
    for engine in engines:
        engine.side.pool.shutdown(cancel_futures=True)
        for room in engine.rooms.open.values():
            room.close()


def talking_run(template: str) -> Run:
    """A run whose tokenizer knows how a conversation is written."""
    run, tokenizer = text_run("lstm"), copy.copy(TOKENIZER)
    assert isinstance(tokenizer, WordTokenizer)
    tokenizer.chat = template
    run.processor = TextProcessor(tokenizer)
    return run


@pytest.mark.parametrize("told", ["", "the cat"])
def test_a_conversation_is_rendered_once_be_its_text_empty(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    """An empty one begins with the start symbol, as an empty prompt does."""
    rendered: list[Any] = []
    served = serve({"a": talking_run(PLAIN)})
    monkeypatch.setattr("regard.serving.engine.side.rendered", lambda _, turns: rendered.append(turns) or told)
    served.ask(1, prompt="", messages=[{"role": "user", "content": told}])
    served.until(lambda: served.told.finished(1))
    assert len(rendered) == 1
    assert served.told.of("begun", 1)[0]["prompt_tokens"] == len(told.split())
