"""Those who take long: a reader that stops reading, requests that do not come to an end."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import regard
from served import Served, serving

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

SECONDS = 2.0  # that a request may take
STALLED = 10.0  # after which a reader that does not read is cut
LATE = 25.0  # more that a busy machine may take for anything
END = b"data: [DONE]\n\n\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("slow")
    (found / "my.txt").write_text("the cat sat on the mat . a dog ran .\n" * 40, encoding="utf-8")
    how = {"budget": "2steps", "size": "tiny", "device": "cpu"}
    regard.train("lstm", str(found / "my.txt"), out=str(found / "runs" / "lstm"), **how)
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with serving(folder, "--slots", "2", "--timeout", str(SECONDS), "--max-tokens", "1000000") as found:
        yield found


@pytest.fixture(scope="module")
def patient(folder: Path) -> Iterator[Served]:
    """The same, which waits for a text as long as it does unless told otherwise."""
    with serving(folder, "--slots", "2", "--max-tokens", "1000000") as found:
        yield found


@pytest.fixture(scope="module")
def endless(folder: Path) -> dict[str, Any]:
    """A request whose texts do not end by themselves."""
    end = regard.load(folder / "runs" / "lstm").tokenizer.eos_id
    return {"prompt": "the", "max_tokens": 1_000_000, "logit_bias": {str(end): -100}}


def until(is_so: Callable[[], bool], seconds: float) -> float:
    """How long it took until something was so; at most so many seconds."""
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < seconds
        time.sleep(0.05)
    return time.monotonic() - begun


def events(server: Served) -> dict[str, int]:
    found = re.findall(r'regard_events_total{kind="(\w+)"} (\d+)', server.get("metrics").text)
    return {kind: int(count) for kind, count in found}


def is_idle(server: Served) -> bool:
    """Whether nobody but who asks is there, and no slot is taken."""
    engine = sum(server.gauge(f"regard_engine_{name}") for name in ("taken", "waiting"))
    return server.gauge("regard_requests_open") == 1 and engine == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_is_handed_over_as_it_is_when_its_time_is_up(
    server: Served, endless: dict[str, Any], stream: bool
) -> None:
    before, begun = events(server)["timeout"], time.monotonic()
    answer = server.post("v1/completions", endless | {"n": 2, "stream": stream})
    took = time.monotonic() - begun
    assert answer.status_code == 200
    if stream:
        *chunks, done = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
        assert done == "[DONE]"
        choices = [choice for chunk in chunks for choice in json.loads(chunk)["choices"]]
    else:
        choices = answer.json()["choices"]
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["timeout"] * 2
    assert len("".join(choice["text"] for choice in choices)) > 10
    assert SECONDS - 0.1 < took < SECONDS + LATE
    assert events(server)["timeout"] == before + 1
    until(lambda: is_idle(server), LATE)


def test_more_than_there_are_slots_for_are_all_answered_in_time(server: Served, endless: dict[str, Any]) -> None:
    """Of twelve texts for two slots: who comes to one in time is cut, others are told to ask later; nothing stays."""
    begun = time.monotonic()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda seed: server.post("v1/completions", endless | {"seed": seed}), range(12)))
    assert time.monotonic() - begun < SECONDS + LATE
    written = [answer for answer in answers if answer.status_code == 200]
    refused = [answer for answer in answers if answer.status_code == 503]
    assert len(written) >= 2
    assert len(written) + len(refused) == 12
    assert all(answer.json()["choices"][0]["finish_reason"] == "timeout" for answer in written)
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
    until(lambda: is_idle(server), LATE)


def begun_reading(server: Served, asked: dict[str, Any]) -> socket.socket:
    """A client that has asked for a stream, seen its beginning, and has room for little more."""
    content = json.dumps(asked | {"stream": True}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(30)
    line.connect(("127.0.0.1", server.port))
    line.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    assert line.recv(12) == b"HTTP/1.1 200"
    return line


def rest(line: socket.socket) -> bytes:
    found = bytearray()
    while more := line.recv(1 << 20):
        found += more
    return bytes(found)


def test_a_reader_that_does_not_read_is_cut_and_one_that_pauses_is_not(patient: Served) -> None:
    """Of a text whose prompt is told in full, which is more than the system keeps for a connection."""
    large = {"prompt": "the cat sat on the mat . " * 240, "echo": True, "logprobs": 20, "n": 2, "max_tokens": 4}
    whole = patient.post("v1/completions", large | {"stream": True}).content
    assert len(whole) > 5 << 20
    with begun_reading(patient, large) as pausing, begun_reading(patient, large) as stalled:
        begun = time.monotonic()
        until(lambda: time.monotonic() - begun > STALLED / 4, STALLED)
        assert patient.gauge("regard_requests_open") == 3
        assert patient.post("v1/completions", {"prompt": "the", "max_tokens": 4}).status_code == 200
        assert rest(pausing).endswith(END)
        until(lambda: is_idle(patient), STALLED + LATE)
        assert time.monotonic() - begun > STALLED - 3
        told = rest(stalled)
        assert not told.endswith(END)
        assert len(told) < len(whole)  # what the system had taken for it before it was cut


def test_a_text_for_a_reader_that_does_not_read_is_given_up(patient: Served, endless: dict[str, Any]) -> None:
    before = events(patient)["cancelled"]
    with begun_reading(patient, endless | {"n": 2, "logprobs": 20}):
        until(lambda: is_idle(patient), STALLED + 2 * LATE)
    assert events(patient)["cancelled"] == before + 1


def test_other_questions_have_the_same_time(server: Served) -> None:
    """Predictions that would go on for long: their client is told, and the engine breaks them off."""
    begun = time.monotonic()
    asked = {"input": ["the"] * 20_000, "options": {"max_tokens": 1000, "beam": 8}}
    answers = [server.post("v1/predict", asked) for _ in range(3)]  # more than are computed at once
    assert {answer.status_code for answer in answers} == {503}
    assert {"longer than 2 seconds" in answer.json()["error"]["message"] for answer in answers} == {True}
    assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)
    assert time.monotonic() - begun < 3 * SECONDS + LATE
    assert server.post("v1/score", {"input": "the cat"}).status_code == 200


def test_an_answer_that_takes_long_is_handed_back_by_a_server_that_is_told_to_end_twice(folder: Path) -> None:
    asked = {"input": ["the"] * 3000, "options": {"max_tokens": 4000, "beam": 8}}
    with serving(folder) as ends, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ends.post, "v1/predict", asked)
        until(lambda: ends.gauge("regard_requests_open") == 2, LATE)
        ends.process.send_signal(signal.SIGTERM)
        until(lambda: not listens(ends), LATE)
        ends.process.send_signal(signal.SIGTERM)
        assert answer.result().status_code == 503
        assert "the server is ending" in answer.result().json()["error"]["message"]
        assert int(answer.result().headers["retry-after"]) > 0
        assert ends.process.wait(LATE) == 0
        assert "Traceback" not in ends.log.read_text(encoding="utf-8")


def listens(server: Served) -> bool:
    try:
        server.connect().close()
    except OSError:
        return False
    return True
