"""What one question may cost: tokens of a text, seconds of an answer, places that it takes from others."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from look_run import TEXT, WORDS, class_run, masked_run, pair_run, tag_run, text_run
from open_lab import answering
from regard.errors import TooLong
from regard.explain import registry
from regard.explain.inputs import length_of, read
from regard.explain.look import MANY_PASSES, ONE_PASS, Options
from regard.explain.packed import MOST_WHOLE, by_block, packed
from regard.explain.registry import limits, refuse_long
from regard.explain.view import Heat
from regard.serving import lab, pool, wanted
from regard.serving.guard import Refused
from regard.serving.lab import Lab
from regard.serving.pool import RunPool, Turns
from regard.serving.provider import RunProvider
from regard.serving.wanted import Wanted, watched

RUNS: dict[str, Callable[[], Any]] = {
    "text": lambda: text_run("gpt"),
    "masked": masked_run,
    "labelled": class_run,
    "tagged": tag_run,
    "pairs": lambda: pair_run("transformer"),
    "counts": lambda: text_run("lstm"),
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A page with one run, an LSTM, which reads texts of any length."""
    provider = RunProvider(lambda: {"run": tmp_path}, "cpu")
    made = text_run("lstm")
    made.config["data"]["path"] = "world:stories"
    watched(made.model)
    monkeypatch.setattr(provider.pool, "load", lambda _path: made)
    with answering(provider) as server:
        yield server


def question(server: Lab, path: str, asked: dict[str, Any], seconds: float = 20) -> socket.socket:
    """A connection over which a question was sent."""
    body = json.dumps(asked).encode()
    line = socket.create_connection(server.server_address, timeout=seconds)  # pyright: ignore[reportArgumentType]
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return line


def connect(server: Lab) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)


def answer(line: socket.socket) -> tuple[int, dict[str, Any]]:
    content = b""
    with line:
        while piece := line.recv(1 << 16):
            content += piece
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def view_of(text: str, name: str = "next", **options: Any) -> dict[str, Any]:
    return {"run": "run", "view": name, "text": text, "options": options}


@pytest.mark.parametrize("name", RUNS)
def test_tokens_are_counted_as_they_are_read_without_running_the_model(name: str) -> None:
    run = RUNS[name]()
    side = read(run, TEXT).sides[0]
    run.model.forward = None  # nothing may call it
    assert length_of(run, TEXT) == len(side)


def test_every_look_says_how_many_tokens_it_takes_and_one_that_keeps_or_reads_much_takes_few() -> None:
    by_name = {look.name: look.max_tokens for look in registry.looks()}
    assert all(0 < most <= ONE_PASS for most in by_name.values())
    often = {name for name, most in by_name.items() if most <= MANY_PASSES}
    assert often == {"forgetting", "contributions", "number", "flow"}
    assert set(limits(text_run("lstm"))) == set(registry.views(text_run("lstm")))
    assert set(limits(text_run("backpack", position="learned")).values()) == {64}  # positions of the tiny one
    with pytest.raises(TooLong, match="the text has 81 tokens, and the model has positions for 64: give"):
        refuse_long(text_run("backpack", position="learned"), None, " ".join(WORDS * 10), Options())


def test_a_text_that_is_too_long_is_refused_before_anything_is_computed_and_says_what_fits() -> None:
    run = text_run("lstm")
    text = " ".join(WORDS * 40)  # 320 words
    run.model.forward = None
    with pytest.raises(
        TooLong, match="the text has 321 tokens, and the view forgetting takes at most 256: give"
    ) as told:
        refuse_long(run, "forgetting", text, Options())
    assert length_of(run, text[: told.value.fits]) == MANY_PASSES
    assert length_of(run, text[: told.value.fits + len(" small the")]) > MANY_PASSES  # pyright: ignore[reportOperatorIssue]
    refuse_long(run, "next", text, Options())
    with pytest.raises(TooLong, match="the other text has"):
        refuse_long(run, "meaning", TEXT, Options(other=" ".join(WORDS * 300), word="dog"))
    with pytest.raises(TooLong, match="the target has"):
        refuse_long(pair_run("bahdanau"), "next", TEXT, Options(target=" ".join(WORDS * 300)))


def test_a_pasted_text_of_any_length_is_answered_at_once_with_one_line(server: Lab) -> None:
    for count in (500, 2_500, 25_000, 50_000):
        text = " ".join(["dog"] * count)
        began = time.monotonic()
        status, told = answer(question(server, "/api/view", view_of(text)))
        assert time.monotonic() - began < 10
        if count < ONE_PASS:
            assert status == 200
            continue
        assert (status, told["most"]) == (413, ONE_PASS)
        assert told["error"].endswith(
            f"{count + 1:,} tokens, and the view next takes at most 2,048: give a shorter one"
        )
        assert text[: told["fits"]].split() == ["dog"] * (ONE_PASS - 1)
    assert answer(question(server, "/api/tokens", {"run": "run", "text": text}))[1] == {"tokens": 50_001}


def test_a_large_map_is_sent_as_a_smaller_one_and_every_row_can_be_had_in_full() -> None:
    weights = np.random.default_rng(0).normal(size=(2000, 1999))
    page = Heat(weights=weights).to_page(MOST_WHOLE)
    told = page["weights"]
    assert told["shape"] == [2000, 1999]
    assert told["block"] == 2
    assert len(json.dumps(page)) < 1.5 * MOST_WHOLE
    small = by_block(weights, 2)
    assert small.shape == (1000, 1000)
    assert told["data"] == packed(small)["data"]
    for row, column in ((0, 0), (999, 999), (500, 3)):
        block = weights[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert small[row, column] == block.flat[np.abs(block).argmax()]
    assert "block" not in Heat(weights=weights).to_page()["weights"]  # a file that stands alone has all of it


def test_a_smaller_map_keeps_what_is_masked_apart_from_what_is_nothing() -> None:
    small = by_block(np.array([[np.nan, np.nan, 0.0], [np.nan, np.nan, np.nan], [-2.0, 1.0, np.nan]]), 2)
    np.testing.assert_array_equal(small, [[np.nan, 0.0], [-2.0, np.nan]])


def test_an_answer_nobody_waits_for_is_not_computed_any_further(server: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def endless(*_: Any, **__: Any) -> Any:
        begun.set()
        model = text_run("lstm").model
        watched(model)
        try:
            while True:
                model(torch.zeros(1, 2, dtype=torch.long))
        except ConnectionAbortedError:
            stopped.set()
            raise

    monkeypatch.setattr(registry, "shown", endless)
    line = question(server, "/api/view", view_of("the dog"))
    assert begun.wait(10)
    line.close()
    assert stopped.wait(10)
    assert answer(question(server, "/api/tokens", {"run": "run", "text": "the dog"}))[0] == 200


def test_one_who_has_said_all_and_still_reads_gets_the_answer(server: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.shown

    def slow(*given: Any, **more: Any) -> Any:
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            wanted.check()
            time.sleep(0.01)
        return real(*given, **more)

    monkeypatch.setattr(registry, "shown", slow)
    told = connect(server)
    told.request("POST", "/api/view", json.dumps(view_of("the dog")), {"Content-Type": "application/json"})
    told.sock.shutdown(socket.SHUT_WR)
    assert told.getresponse().status == 200
    told.close()


def test_one_who_has_said_all_and_then_leaves_is_noticed(server: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def endless(*_: Any, **__: Any) -> Any:
        begun.set()
        try:
            while True:
                wanted.check()
                time.sleep(0.01)
        except ConnectionAbortedError:
            stopped.set()
            raise

    monkeypatch.setattr(registry, "shown", endless)
    line = question(server, "/api/view", view_of("the dog"))
    line.shutdown(socket.SHUT_WR)
    assert begun.wait(10)
    assert not stopped.wait(0.3)
    line.close()
    assert stopped.wait(10)


def test_a_computation_is_stopped_when_its_time_is_up_and_says_so(server: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "Wanted", lambda is_gone: Wanted(is_gone, seconds=0.0))
    status, told = answer(question(server, "/api/view", view_of("the dog")))
    assert status == 503
    assert told["error"] == "this takes longer than 0 seconds and was stopped: give a shorter text"


def test_a_model_that_was_stopped_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    run = text_run("lstm")
    watched(run.model)
    before = registry.shown(run, "gates", TEXT, Options()).to_dict()
    for calls in range(1, 12):
        left = iter(range(calls))
        monkeypatch.setattr(wanted, "check", lambda left=left: next(left))
        with pytest.raises(StopIteration):
            registry.shown(run, "gates", TEXT, Options())
        assert not any(part._forward_hooks for part in run.model.modules())
    monkeypatch.undo()
    assert registry.shown(run, "gates", TEXT, Options()).to_dict() == before


def test_a_short_question_to_the_same_run_does_not_wait_for_a_long_one(
    server: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, held, shown = threading.Event(), threading.Event(), registry.shown

    def slow(run: Any, name: str | None, given: str, options: Options, **_: Any) -> Any:
        if len(given) > 400:
            begun.set()
            assert held.wait(20)
        return shown(run, name, given, options)

    monkeypatch.setattr(registry, "shown", slow)
    long = [question(server, "/api/view", view_of("the dog sees " * 40)) for _ in range(3)]
    assert begun.wait(10)
    assert answer(question(server, "/api/view", view_of("the dog")))[0] == 200
    assert answer(question(server, "/api/run", {"run": "run"}))[0] == 200
    assert not held.is_set()
    held.set()
    assert [answer(line)[0] for line in long] == [200, 200, 200]


def test_long_questions_take_turns_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WAITING", 0)
    turns = Turns()
    with turns.taken(), pytest.raises(Refused, match="too many long texts"), turns.taken():
        pass
    with turns.taken():
        pass


def test_runs_are_loaded_once_let_go_of_in_turn_and_loaded_again_when_they_were_written_anew(tmp_path: Path) -> None:
    loaded: list[str] = []

    def load(path: Path) -> str:
        loaded.append(path.name)
        return path.name

    runs = RunPool(load)
    for number in range(pool.IN_MEMORY + 1):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "config.json").write_text("{}")
        for _ in range(2):
            with runs.lent(tmp_path / str(number)):
                pass
    assert loaded == ["0", "1", "2", "3", "4"]
    with runs.lent(tmp_path / "1"), runs.lent(tmp_path / "0"):
        pass
    assert loaded[5:] == ["0"]
    (tmp_path / "1" / "model.safetensors").write_text("")
    with runs.lent(tmp_path / "1"):
        pass
    assert loaded[6:] == ["1"]
    with runs.lent(tmp_path / "1"), runs.lent(tmp_path / "1"):  # where questions meet
        pass
    assert loaded[7:] == ["1"]


def test_a_run_that_cannot_be_loaded_takes_no_place(tmp_path: Path) -> None:
    def load(_: Path) -> Any:
        raise ValueError("damaged")

    runs = RunPool(load)
    for _ in range(pool.COPIES + 1):
        with pytest.raises(ValueError, match="damaged"), runs.lent(tmp_path):
            pass


def test_500_connections_at_once_are_answered(server: Lab) -> None:
    lines = []
    for _ in range(500):
        lines.append(socket.create_connection(server.server_address, timeout=20))  # pyright: ignore[reportArgumentType]
    for line in lines:
        line.sendall(b"GET /api/examples HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    for line in lines:
        assert line.recv(20).startswith(b"HTTP/1.1 200")
        line.close()


def test_no_more_than_so_many_connections_are_answered_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "AT_ONCE", 2)
    with answering(RunProvider(dict)) as server:
        before = threading.active_count()
        lines = [socket.create_connection(server.server_address, timeout=20) for _ in range(6)]  # pyright: ignore[reportArgumentType]
        lines[0].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert lines[0].recv(20).startswith(b"HTTP/1.1 200")
        assert threading.active_count() - before <= 2
        for line in lines:
            line.close()


def test_silent_connections_give_way_to_one_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "AT_ONCE", 4)
    with answering(RunProvider(dict)) as server:
        silent = [socket.create_connection(server.server_address, timeout=20) for _ in range(4)]  # pyright: ignore[reportArgumentType]
        began = time.monotonic()
        for _ in range(3):
            told = connect(server)
            told.request("GET", "/api/examples")
            assert told.getresponse().status == 200
            told.close()
        assert time.monotonic() - began < lab.IN_TIME / 2
        for line in silent:
            line.close()


def test_a_request_that_trickles_in_is_cut(server: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "IN_TIME", 0.3)
    for start in (b"GET / HTTP/1.1\r\n", b"POST /api/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n"):
        with socket.create_connection(server.server_address, timeout=10) as line:  # pyright: ignore[reportArgumentType]
            line.sendall(start)
            line.settimeout(0.02)
            began, is_open = time.monotonic(), True
            while is_open and time.monotonic() - began < 5:
                try:
                    line.sendall(b"x")
                    is_open = line.recv(1000) != b""
                except TimeoutError:
                    continue
                except ConnectionError:
                    is_open = False
            assert not is_open
            assert time.monotonic() - began < 3
