"""Requests that no browser sends: each gets a refusal in one line, and the server goes on."""

from __future__ import annotations

import dataclasses
import json
import random
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from look_run import WORDS, class_run, masked_run, pair_run, tag_run, text_run
from open_lab import answering
from regard.explain import registry
from regard.explain.look import Options
from regard.serving import lab
from regard.serving.guard import LARGEST
from regard.serving.lab import Lab
from regard.serving.provider import RunProvider

HOST = b"Host: localhost\r\n"
POST = b"POST /api/run HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
REQUESTS = 400
MADE: dict[str, tuple[Callable[[], Any], str]] = {
    "gpt": (lambda: text_run("gpt"), "world:stories"),
    "mamba": (lambda: text_run("mamba"), "world:stories"),
    "backpack": (lambda: text_run("backpack"), "world:stories"),
    "masked": (masked_run, "world:stories"),
    "classes": (class_run, "world:reviews"),
    "tags": (tag_run, "world:tags"),
    "pairs": (lambda: pair_run("transformer"), "world:translation"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A page with a run of each of several tasks."""
    folder = tmp_path_factory.mktemp("runs")
    paths = {f"runs/{name}": folder / name for name in MADE}
    provider = RunProvider(lambda: paths, "cpu")
    provider.pool.load = loaded
    with pytest.MonkeyPatch.context() as patch, answering(provider) as server:
        patch.setattr(lab, "IN_TIME", 1.0)  # a wild length is waited for
        yield server


def loaded(path: Path) -> Any:
    make, data = MADE[path.name]
    run = make()
    run.config["data"]["path"] = data
    return run


def said(server: Lab, request: bytes, *, ends: bool = False) -> tuple[int, Any]:
    """Status and body of the answer to some bytes; 0 where the server hung up without a word."""
    with socket.create_connection(server.server_address, timeout=30) as line:  # pyright: ignore[reportArgumentType]
        try:
            line.sendall(request)
            if ends:
                line.shutdown(socket.SHUT_WR)
            content = b""
            while b"\r\n\r\n" not in content and (piece := line.recv(1 << 16)):
                content += piece
            head, _, body = content.partition(b"\r\n\r\n")
            if not head:
                return 0, None
            length = int(head.lower().split(b"content-length:")[1].split()[0])
            while len(body) < length and (piece := line.recv(1 << 16)):
                body += piece
        except ConnectionError:
            return 0, None
    return int(head.split()[1]), json.loads(body) if b"json" in head else body


def check_alive(server: Lab) -> None:
    assert said(server, b"GET /api/examples HTTP/1.1\r\n" + HOST + b"\r\n")[0] == 200


@pytest.mark.parametrize(
    "request_",
    [
        POST + "Content-Length: ²\r\n\r\n".encode("latin-1"),
        POST + "Content-Length: ²\r\n\r\n".encode(),
        POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        POST + b"Content-Length: 10000000000\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: +2\r\n\r\n{}",
        POST + b"Content-Length: 0x2\r\n\r\n{}",
        POST + b"Content-Length: 2, 2\r\n\r\n{}",
        POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        POST + b"Content-Length:\r\n\r\n{}",
        POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
        POST + b"\r\n{}",
        b"GET http://[::1 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"POST http://[::1 HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"GET //[ HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /\x00 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\n\x00\x00: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\x00\r\n : \r\n\r\n" + b"x" * 10,
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET / HTTP/\xb2.0\r\n\r\n",
        b"GET / HTTP/" + b"1" * 5000 + b".1\r\n\r\n",
        b"GET / HTTP/3.0\r\n\r\n",
        b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"a b c d e f\r\n\r\n",
    ],
)
def test_a_malformed_request_gets_a_refusal_in_json_and_no_traceback(
    server: Lab, request_: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    status, told = said(server, request_)
    assert 400 <= status < 500 or status in (501, 505)
    assert set(told) == {"error"}
    assert "\n" not in told["error"]
    check_alive(server)
    assert capfd.readouterr().err == ""


def test_a_body_that_ends_early_is_refused(server: Lab) -> None:
    status, told = said(server, POST + b"Content-Length: 9\r\n\r\n{}", ends=True)
    assert (status, told) == (400, {"error": "the question ended after 2 of 9 bytes"})


def test_requests_of_the_page_that_went_wild_meet_no_bug(server: Lab, capfd: pytest.CaptureFixture[str]) -> None:
    """Questions with the grammar of the page and values of chance, and requests with bytes of chance."""
    chance = random.Random(0)
    views = {f"runs/{name}": list(registry.views(loaded(Path(name)))) for name in MADE}
    statuses = []
    for number in range(REQUESTS):
        request = wild_bytes(chance) if number % 4 == 0 else wild_question(chance, views)
        status, told = said(server, request, ends=chance.random() < 0.1)
        assert status < 500 or status in (501, 505), (request[:2000], told)
        statuses.append(status)
    check_alive(server)
    assert "Traceback" not in capfd.readouterr().err
    assert statuses.count(200) > REQUESTS / 10  # many get past the first checks


def wild_question(chance: random.Random, views: Mapping[str, Sequence[str]]) -> bytes:
    path = chance.choice(["view"] * 6 + ["run", "tokens", "row", "example", "progress"])
    body = json.dumps(wild_body(chance, path, views)).encode()
    head = b"POST /api/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % path.encode()
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def wild_body(chance: random.Random, path: str, views: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    run = chance.choice(list(views))
    chosen = chance.sample(OPTIONS, chance.choice([0, 1, 1, 2, 3]))
    view = {
        "run": run,
        "view": chance.choice([None, "nothing", *views[run] * 3]),
        "text": wild_text(chance),
        "options": {name: wild_value(chance, name) for name in chosen},
    }
    asked: dict[str, Any] = {
        "view": view,
        "run": {"run": run},
        "tokens": {"run": run, "text": wild_text(chance)},
        "row": {"of": view, "panel": chance.choice([0, 0, 1]), "row": chance.choice([0, 3, -1, 10**9])},
        "example": {"name": chance.choice(["ab", "lstm", "x" * 3000])},
        "progress": {
            "runs": [{"name": run, "offset": chance.choice([0, -9, 2**70]), "mark": ""}] * chance.randrange(3)
        },
    }[path]
    if chance.random() < 0.15:
        asked[chance.choice([*asked, "else"])] = wild_value(chance)
    return asked


OPTIONS = [field.name for field in dataclasses.fields(Options)]
FITTING: dict[str, Sequence[Any]] = {
    **dict.fromkeys(("layer", "head", "neuron", "top_k"), (None, 1, 2, 5, 10**6, 2**63 - 1)),
    **dict.fromkeys(("position", "reduce", "seed"), (0, 1, 2, 7, 2**31, 2**63 - 1)),
    **dict.fromkeys(("merge", "hide_sink", "by_values"), (True, False)),
    **dict.fromkeys(("temperature", "top_p"), (0.0, 1e-320, 0.01, 1, 2.0, 1e308)),
    "sort": ("", "layer", "name", "entropy", "first", "entrophy"),
    **dict.fromkeys(("target", "other"), ("", " ", "dog", "the dog sees a cat", "\x00", "dog " * 3000)),
    "side": ["source", "target", "text", "past"],
    "word": ["dog", "the", "\x00", ""],
    "scale": ["dog:1=0.5", "dog:2=-1e30", "dog:" + "9" * 5000 + "=1", "the:1=" + "9" * 400],
}
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, 5, -1, 2**31, 2**63 - 1, 2**63, 10**40, 0.0, 0.5, -0.5, 1e-320, 1e308),
    *(float("inf"), float("nan"), "", "dog", "the", "target", "source", "dog:1=0.5", "dog:" + "9" * 5000 + "=1"),
    *("dog:1=" + "9" * 400, ":=", "\x00", "\ud800", "[MASK]", [], {}, [[]], {"a": {"b": []}}, "x" * 20_000),
]


def wild_value(chance: random.Random, name: str = "") -> Any:
    """A value that fits an option, more often than not; else anything."""
    return chance.choice(FITTING[name] if name and chance.random() < 0.8 else VALUES)


def wild_text(chance: random.Random) -> str:
    odd = ["", " ", "\x00", "\ud800", "[MASK]", "\u202e", "dog" * 3000, "\r\n", "é" * 50, "world:shapes", "/etc/passwd"]
    words = [chance.choice(WORDS) for _ in range(chance.choice([0, 1, 2, 6, 20, 70]))]
    return " ".join([*words, *([chance.choice(odd)] if chance.random() < 0.4 else [])])


def wild_bytes(chance: random.Random) -> bytes:
    """A request that is good but for a few bytes."""
    asked = json.dumps({"run": "runs/gpt", "view": "next", "text": "the dog", "options": {}}).encode()
    good = b"POST /api/view HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    made = bytearray(good + b"Content-Length: %d\r\n\r\n" % len(asked) + asked)
    for _ in range(chance.choice([1, 1, 2, 8, 40])):
        place = chance.randrange(len(made))
        piece = chance.choice(
            [b"", b"\x00", b"\xff", b"\r\n", b":", b" ", b"9", b"{", bytes([chance.randrange(256)]) * 3]
        )
        made[place : place + chance.choice([0, 1, 5])] = piece
    return bytes(made) + b"\r\n\r\n" + b" " * 200  # whatever it takes for a length has come


def test_a_question_of_the_largest_size_is_read_and_refused(server: Lab) -> None:
    body = b'{"run": "' + b"x" * (LARGEST - 20) + b'"}'
    status, told = said(server, POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert status == 400
    assert len(told["error"]) < 1100
