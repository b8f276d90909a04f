"""A server among strangers: who may come in, what malformed requests meet, and how long anybody may take."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import regard
from awaited import awaited
from served import Served, serving

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

KEY = "a-key-of-this-test"
HEADERS = {"Authorization": f"Bearer {KEY}"}
START = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-key-of-this-test\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("hostile")
    text = "the cat sat on the mat . a dog ran .\n" * 40
    (found / "my.txt").write_text(text, encoding="utf-8")
    how = {"budget": "2steps", "size": "tiny", "device": "cpu"}
    regard.train("lstm", str(found / "my.txt"), out=str(found / "runs" / "lstm"), **how)
    (found / "keys").write_text(f"{KEY}\nanother\n", encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with serving(folder, "--api-key", "keys", "--slots", "2", "--queue", "4", "--timeout", "20") as found:
        yield found


def asked(server: Served, content: bytes, head: bytes = b"Content-Type: application/json\r\n") -> bytes:
    """What comes back for bytes, up to the end of the connection or a second of silence."""
    with server.connect() as line:
        line.sendall(START + head + b"Content-Length: %d\r\n\r\n" % len(content) + content)
        return received(line)


def received(line: socket.socket, seconds: float = 10.0) -> bytes:
    line.settimeout(seconds)
    found = b""
    try:
        while more := line.recv(1 << 16):
            found += more
            if _complete(found):
                break
    except OSError:
        pass
    return found


def _complete(found: bytes) -> bool:
    head, gap, body = found.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(gap and lengths) and len(body) >= int(lengths[0].split(b":")[1])


def test_without_a_key_nothing_is_answered_but_health(server: Served) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": KEY}, {"Authorization": f"Basic {KEY}"}):
        answer = server.post("v1/completions", {"prompt": "the"}, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert server.get("v1/models", headers=headers).status_code == 401
        assert server.get("api/runs", headers=headers).status_code == 401
        assert server.get("metrics", headers=headers).status_code == 401
    assert server.get("health/live").status_code == 200
    assert server.get("health").json() == {"live": True, "ready": True}
    assert server.post("v1/completions", {"prompt": "the"}, headers=HEADERS).status_code == 200


def test_other_sites_are_not_answered(server: Served) -> None:
    body = {"prompt": "the"}
    assert server.post("v1/completions", body, headers=HEADERS | {"Host": "evil.example"}).status_code == 403
    assert server.post("v1/completions", body, headers=HEADERS | {"Origin": "http://evil.example"}).status_code == 403
    answer = server.post("v1/completions", body, headers=HEADERS)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    form = HEADERS | {"Content-Type": "text/plain"}
    assert server.post("v1/completions", body, headers=form).status_code == 415


def test_a_whole_address_is_answered_as_its_path_is(server: Served) -> None:
    """As proxies send them; the names of this machine have no case."""
    body = json.dumps({"prompt": "the", "max_tokens": 1}).encode()
    for name, status in (("localhost", b"200"), ("LOCALHOST", b"200"), ("evil.example", b"403")):
        start = START.replace(b"/v1/", f"http://{name}:{server.port}/v1/".encode())
        with server.connect() as line:
            head = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            line.sendall(start.replace(b"Host: localhost", b"Host: LocalHost") + head + body)
            assert received(line).split(b" ")[1] == status


def test_this_machine_may_be_named_by_its_other_address(folder: Path) -> None:
    try:
        with socket.socket(socket.AF_INET6) as line:
            line.bind(("::1", 0))
    except OSError:
        pytest.skip("there is no IPv6 here")
    with serving(folder, "--host", "::1") as server:
        assert server.url.startswith("http://[::1]:")
        assert server.post("v1/completions", {"prompt": "the"}).status_code == 200
        own = {"Origin": server.url.rstrip("/")}
        assert server.post("v1/completions", {"prompt": "the"}, headers=own).status_code == 200
        assert server.post("v1/completions", {"prompt": "the"}, headers={"Host": "evil.example"}).status_code == 403


MALFORMED = [
    b"", b"{", b"[]", b"nul", b'"x"', b"\xff\xfe", b'{"prompt": "\xff"}', b'{"prompt": "\\ud800"}', b"[" * 100_000,
    b'{"temperature": NaN}', b'{"temperature": 1e999}', b'{"max_tokens": ' + b"9" * 5000 + b"}", b'{"n": true}',
    b'{"a":' * 40 + b"1" + b"}" * 40, b'{"prompt": "a", "prompt": "b"}', b'{"prompt": {"a": 1}}', b'{"prompt": []}',
    b'{"prompt": [[]]}', b'{"prompt": [-1]}', b'{"prompt": [1.5]}', b'{"stop": ""}', b'{"stop": ["a", ""]}',
    b'{"logit_bias": {"x": 1}}', b'{"logit_bias": {"99999": 1}}', b'{"logprobs": 10000}', b'{"n": 100000}',
    b'{"seed": 99999999999999999999}', b'{"top_p": 0}', b'{"model": "../../etc/passwd"}', b'{"best_of": 3}',
    b'{"response_format": {"type": "regex", "pattern": "((((a{1,999}){1,999})"}}', b'{"suffix": "x"}',
    b'{"response_format": {"type": "regex", "pattern": "(a{1,999}){1,999}"}}',
    b'{"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "#"}}}}',
    b'{"prompt": "' + b"a" * 30_000 + b'", "echo": true, "logprobs": 20, "n": 16}',
]  # fmt: skip


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_request_is_refused_in_openais_form(server: Served, content: bytes) -> None:
    answer = asked(server, content)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert int(head.split()[1]) in (400, 404)
    told = json.loads(body)["error"]
    assert told["message"]
    assert len(told["message"]) <= 1000


def test_fuzzed_requests_never_make_it_fail(server: Served) -> None:
    """Bytes of a good request changed here and there, in head and body."""
    chance = random.Random(0)
    body = json.dumps({"prompt": "the cat", "max_tokens": 2, "temperature": 0.5, "stop": ["x"], "n": 1}).encode()
    whole = START + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def one(_: int) -> bytes:
        content = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(content))
            content[at : at + chance.choice([0, 1, 1, 5])] = chance.randbytes(chance.choice([0, 1, 1, 3]))
        with server.connect() as line:
            line.sendall(bytes(content))
            return received(line, 0.3)

    with ThreadPoolExecutor(8) as pool:
        statuses = [answer.split(b" ")[1] for answer in pool.map(one, range(150)) if answer]
    assert len(set(statuses)) > 2
    assert not [status for status in statuses if status.startswith(b"50") and status != b"503"]
    assert "Traceback" not in server.log.read_text(encoding="utf-8")
    assert server.post("v1/completions", {"prompt": "the"}, headers=HEADERS).status_code == 200


def test_too_large_a_body_is_refused_before_it_has_come(server: Served) -> None:
    with server.connect() as line:
        line.sendall(START + b"Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{")
        assert b" 413 " in received(line).split(b"\r\n")[0]
    with server.connect() as line:
        line.sendall(START + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(64):
                line.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        except OSError:
            pass
        assert received(line)[:13] in (b"", b"HTTP/1.1 413 ")  # or the connection was broken before it was read


def counted(server: Served) -> Counter[int]:
    """How many requests for texts have met each status, as the server counts them."""
    told = server.get("metrics", headers=HEADERS).text
    found = re.findall(r'regard_requests_total{path="/v1/completions",status="(\d+)"} (\d+)', told)
    return Counter({int(status): int(count) for status, count in found})


def test_a_burst_beyond_the_queue_gets_503_and_the_rest_200(server: Served) -> None:
    """Two slots and room for four more; whoever is let in is served whole, and the server counts as its clients do."""
    body = {"prompt": "the", "max_tokens": 60, "temperature": 1.0}
    before = counted(server)
    with ThreadPoolExecutor(24) as pool:
        answers = list(
            pool.map(lambda n: server.post("v1/completions", body | {"seed": n}, headers=HEADERS), range(60))
        )
    assert Counter(answer.status_code for answer in answers) == counted(server) - before
    good, refused = ([answer for answer in answers if answer.status_code == status] for status in (200, 503))
    assert len(good) + len(refused) == 60
    assert refused
    assert len(good) >= 6
    for answer in good:
        told = answer.json()
        count = told["usage"]["completion_tokens"]
        assert told["choices"][0]["finish_reason"] == "stop" or count == 60
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
    assert all(answer.json()["error"]["code"] == "overloaded" for answer in refused)
    again = [server.post("v1/completions", body | {"seed": n}, headers=HEADERS) for n in range(60)]
    wanted = {n: one.json()["choices"] for n, one in enumerate(again)}
    assert all(answer.json()["choices"] == wanted[n] for n, answer in enumerate(answers) if answer.status_code == 200)


def test_openais_client_comes_again_when_it_is_told_to(server: Served) -> None:
    openai = pytest.importorskip("openai")
    before = counted(server)

    async def together() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}v1", api_key=KEY, max_retries=20) as client:
            how = {"model": "lstm", "prompt": "the", "max_tokens": 60}
            return await asyncio.gather(*(client.completions.create(**how, seed=seed) for seed in range(14)))

    assert [answer.object for answer in awaited(together())] == ["text_completion"] * 14
    after = counted(server) - before
    assert after[200] == 14
    assert after[503] > 0


def test_those_who_trickle_or_say_nothing_are_cut(server: Served) -> None:
    begun = time.monotonic()
    slow = [server.connect() for _ in range(3)]
    slow[0].sendall(START)
    slow[1].sendall(START + b"Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{")
    left, cut = dict(enumerate(slow)), {}
    while left and time.monotonic() - begun < 20:
        time.sleep(0.5)
        for number, line in list(left.items()):
            line.settimeout(0.01)
            try:
                if number < 2:
                    line.sendall(b"X" if number == 0 else b" ")
                if line.recv(1000) == b"":
                    raise ConnectionError
            except TimeoutError:
                continue
            except OSError:
                cut[number] = time.monotonic() - begun
                left.pop(number).close()
    assert sorted(cut) == [0, 1, 2]
    assert max(cut.values()) < 13


def test_rates_and_binding(folder: Path) -> None:
    from regard.serving.http.errors import Error
    from regard.serving.http.gate import Rates

    rates = Rates(60)
    for _ in range(60):
        rates.check("one", 0.0)
    rates.check("other", 0.0)
    with pytest.raises(Error, match="60 requests a minute") as refused:
        rates.check("one", 0.5)
    assert refused.value.retry == 1
    rates.check("one", 1.6)


def test_beyond_this_machine_a_key_is_needed(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from regard.cli.main import main

    monkeypatch.chdir(folder)
    monkeypatch.delenv("REGARD_API_KEY", raising=False)
    assert main(["serve", "runs/lstm", "--host", "0.0.0.0"]) == 2
    assert "give a key with --api-key" in capsys.readouterr().err
    assert main(["serve", "nowhere"]) == 4
    assert main(["serve", "runs/lstm", "--api-key", "nothing"]) == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "runs/lstm", "--port", str(taken.getsockname()[1])]) == 6


def test_a_request_underway_is_finished_when_the_server_is_told_to_end(server: Served) -> None:
    long = {"prompt": "the", "max_tokens": 300, "temperature": 1.0, "seed": 1, "n": 2, "stream": True}
    with httpx.stream("POST", f"{server.url}v1/completions", json=long, headers=HEADERS, timeout=60) as answer:
        lines = answer.iter_lines()
        assert next(lines).startswith("data: ")
        server.process.send_signal(signal.SIGTERM)
        assert [line for line in lines if line][-1] == "data: [DONE]"
    assert server.process.wait(30) == 0
