"""The loop of the engine, turn by turn in this process: what comes over its pipe, and what it says."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from look_run import TOKENIZER, text_run
from regard.data.tokenizer.word import WordTokenizer
from regard.run.run import Run
from regard.serving.engine import process, rooms, side
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

    def events(self, number: int) -> list[Any]:
        """What was told of the texts of a request."""
        return [event for message in self for event in message.get("events", []) if event[0] == number]

    def finished(self, number: int) -> bool:
        """Whether a text of a request has come to its end."""
        return any(event[4] is not None for event in self.events(number))


class Served:
    """An engine whose runs come from memory. loads: how often each was loaded."""

    def __init__(self, engine: EngineProcess, told: Told, loads: list[str]) -> None:
        self.engine, self.told, self.loads = engine, told, loads

    def ask(self, number: int, **more: Any) -> None:
        self.engine.inbox.put(COMPLETION | {"id": number} | more)

    def cancel(self, number: int) -> None:
        self.engine.inbox.put({"do": "cancel", "id": number})

    def has_in_thread(self, number: int) -> bool:
        return number in self.engine.side.underway

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
        engine.side.shutdown()
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


class Rendering:
    """A rendering of conversations that begins, and ends when it is let."""

    def __init__(self) -> None:
        self.begun, self.let, self.count = Event(), Event(), 0

    def __call__(self, _run: Run, _turns: Any) -> str:
        self.count += 1
        self.begun.set()
        assert self.let.wait(LATE)
        return "the"


@pytest.fixture
def rendering(monkeypatch: pytest.MonkeyPatch) -> Rendering:
    found = Rendering()
    monkeypatch.setattr(side, "rendered", found)
    return found


def awaited_in_thread(is_so: Callable[[], bool]) -> None:
    """Wait without a turn of the engine."""
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < LATE
        time.sleep(0.001)


TURNS = {"prompt": "", "messages": [{"role": "user", "content": "the"}]}
SLOW = "[a-z]{1,500}([a-z]*x){3,100}"  # of which an automaton takes seconds and becomes too large


@pytest.mark.parametrize("is_first", [True, False])
def test_who_leaves_while_a_request_is_made_ready_is_not_answered(
    serve: Serve, rendering: Rendering, is_first: bool
) -> None:
    """Be it ready before or after the engine hears of it."""
    served = serve({"a": talking_run(PLAIN)})
    served.ask(1, **TURNS)
    served.until(rendering.begun.is_set)
    if is_first:
        served.cancel(1)
    rendering.let.set()
    awaited_in_thread(lambda: not served.has_in_thread(1))
    served.cancel(1)
    served.ask(2)
    served.until(lambda: served.told.finished(2))
    assert not served.told.events(1)
    assert not served.engine.preparing


def test_who_leaves_before_a_run_is_there_is_not_answered(serve: Serve, rendering: Rendering) -> None:
    served = serve({"a": talking_run(PLAIN)})
    served.ask(1, **TURNS)
    served.engine.turn()
    served.cancel(1)
    served.ask(2)
    served.until(lambda: served.told.finished(2))
    assert not rendering.begun.is_set()
    assert not served.told.of("begun", 1)


def test_texts_are_made_ready_while_other_questions_take_long(serve: Serve) -> None:
    served, let = serve({"a": talking_run(PLAIN)}), Event()
    served.engine.side.verbs["score"] = lambda _run, _asked: let.wait(LATE)
    for number in range(10, 20):
        served.engine.inbox.put({"do": "work", "verb": "score", "run": "a", "asked": {}, "id": number})
    try:
        served.ask(1, **TURNS)
        served.ask(2, pattern="the|cat")
        served.until(lambda: served.told.finished(1) and served.told.finished(2))
        assert not let.is_set()
    finally:
        let.set()
    served.until(lambda: all(served.told.of("answer", number) for number in range(10, 20)))


def test_a_score_is_told_beside_longer_ones_of_the_same_client(serve: Serve) -> None:
    """These ask before every part of a model whether they are still wanted, and let others go on there."""
    served, done = serve({"a": text_run("lstm")}), Event()
    score = served.engine.side.verbs["score"]

    def scored(run: Run, asked: Any) -> Any:
        while asked["is_long"] and not done.is_set():
            score(run, asked)
        return score(run, asked)

    served.engine.side.verbs["score"] = scored
    for number in range(1, 6):
        asked = {"input": ["the cat"], "is_long": number < 5}
        served.engine.inbox.put({"do": "work", "verb": "score", "run": "a", "asked": asked, "id": number})
    served.until(lambda: bool(served.told.of("answer", 5)))
    assert not any(served.told.of("answer", number) for number in range(1, 5))
    done.set()
    served.until(lambda: all(served.told.of("answer", number) for number in range(1, 5)))


def test_a_pattern_that_nobody_waits_for_is_given_up_and_its_thread_is_free(serve: Serve) -> None:
    served = serve({"a": talking_run(PLAIN)})
    served.ask(1, pattern=SLOW)
    served.until(lambda: served.has_in_thread(1))
    served.cancel(1)
    served.until(lambda: not served.has_in_thread(1))
    assert not served.told.of("refused", 1)


def test_a_pattern_has_its_time(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side, "LONGEST", 0.1)
    served = serve({"a": talking_run(PLAIN)})
    served.ask(1, pattern=SLOW)
    served.until(lambda: bool(served.told.of("refused", 1)))
    [told] = served.told.of("refused", 1)
    assert told["status"] == 503
    assert told["message"] == "this takes longer than 0.1 seconds and was stopped: give a smaller pattern"


def test_what_goes_wrong_in_a_thread_is_told(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_run: Run, _turns: Any) -> str:
        raise KeyError("a")

    monkeypatch.setattr(side, "rendered", fails)
    served = serve({"a": talking_run(PLAIN)})
    served.ask(1, **TURNS)
    served.until(lambda: bool(served.told.of("refused", 1)))
    assert served.told.of("refused", 1)[0]["status"] == 500


def test_a_request_for_a_run_that_was_let_go_of_meanwhile_is_made_ready_again(
    serve: Serve, rendering: Rendering
) -> None:
    """The run that comes instead may have another vocabulary."""
    served = serve({"a": talking_run(PLAIN)})
    served.ask(1, **TURNS)
    served.until(rendering.begun.is_set)
    served.engine.rooms._close("a")
    rendering.let.set()
    served.until(lambda: served.told.finished(1))
    assert (served.loads, rendering.count) == (["a", "a"], 2)
