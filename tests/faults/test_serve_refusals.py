"""What is refused beyond texts: whose fault it was is told, and what it cost is counted as what it was."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import regard
from regard.cli.main import main
from served import Served, serving

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

KEY = "schlüssel-42"
HEADERS = {b"Authorization": f"Bearer {KEY}".encode()}
HEAD = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n".encode()
BODY = b'{"prompt": "the", "max_tokens": 1}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = tmp_path_factory.mktemp("refused")
    (found / "my.txt").write_text("the cat sat on the mat . a dog ran .\n" * 40, encoding="utf-8")
    how: dict[str, Any] = {"budget": "2steps", "size": "tiny", "device": "cpu"}
    regard.train("gpt", str(found / "my.txt"), out=str(found / "runs" / "gpt"), **how)
    (found / "keys").write_text(f"{KEY}\n", encoding="utf-8")
    with serving(found, "--api-key", "keys", "--slots", "2") as server:
        yield server


def post(server: Served, path: str, body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}{path}", json=body, headers=HEADERS, timeout=60)  # pyright: ignore[reportArgumentType]


def events(server: Served) -> dict[str, int]:
    told = httpx.get(f"{server.url}metrics", headers=HEADERS, timeout=60).text  # pyright: ignore[reportArgumentType]
    return {kind: int(count) for kind, count in re.findall(r'regard_events_total{kind="(\w+)"} (\d+)', told)}


def test_a_key_may_be_more_than_ascii(server: Served) -> None:
    assert post(server, "v1/completions", {"prompt": "the", "max_tokens": 1}).status_code == 200
    assert server.post("v1/completions", {"prompt": "the"}, headers={"Authorization": "Bearer x"}).status_code == 401


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("v1/embeddings", {"input": [2**31 - 1]}),
        ("v1/embeddings", {"input": [[1], [9999]]}),
        ("v1/embeddings", {"input": "x " * 40_000}),
        ("v1/predict", {"input": "the", "options": {"stop": 5}}),
        ("v1/predict", {"input": "the", "options": {"stop": ["a", 1]}}),
        ("v1/predict", {"input": "the", "options": {"stop": ""}}),
        ("v1/predict", {"input": "the", "options": {"beam": 1.5}}),
        ("v1/predict", {"input": "the", "options": {"max_tokens": 2.5}}),
        ("v1/predict", {"input": "the", "options": {"temperature": "hot"}}),
        ("v1/predict", {"input": "the", "options": {"top_k": True}}),
    ],
)
def test_what_a_client_did_wrong_is_no_failure_of_the_server(server: Served, path: str, body: Any) -> None:
    answer = post(server, path, body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert "Traceback" not in server.log.read_text(encoding="utf-8")


def test_a_damaged_run_is_told_in_a_line(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(server.log.parent)
    copy = shutil.copytree("runs/gpt", "runs/damaged")
    with Path(copy, "model.safetensors").open("r+b") as weights:
        weights.truncate(300)
    assert main(["serve", "runs/damaged", "--port", "0"]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("regard: error: ")
    assert "300 bytes" in line
    assert "Error:" not in line


def test_runs_that_cannot_be_loaded_keep_no_other_from_being_served(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged one and one that has no weights yet, both newer than the one that is whole."""
    whole = server.log.parent / "runs" / "gpt"
    for name in ("whole", "damaged", "begun"):
        shutil.copytree(whole, tmp_path / "runs" / name)
    damaged, begun = tmp_path / "runs" / "damaged", tmp_path / "runs" / "begun"
    with (damaged / "model.safetensors").open("r+b") as weights:
        weights.truncate(300)
    (begun / "model.safetensors").unlink()
    for number, name in enumerate(("whole", "damaged", "begun")):
        os.utime(tmp_path / "runs" / name / "config.json", (number, number))
    with serving(tmp_path) as other:
        assert other.get("health/ready").status_code == 200
        assert other.post("v1/completions", {"model": "whole", "prompt": "the", "max_tokens": 1}).status_code == 200
        about = {one["id"]: one["regard"] for one in other.get("v1/models").json()["data"]}
        assert "error" not in about["whole"]
        assert "300 bytes" in about["damaged"]["error"]
        assert str(tmp_path) not in other.get("v1/models").text
        lines = [line for line in other.log.read_text(encoding="utf-8").splitlines() if "not served" in line]
        assert [line.partition(" ")[0] for line in lines] == ["begun", "damaged"]
        shutil.copy(whole / "model.safetensors", damaged)
        assert other.post("v1/score", {"model": "damaged", "input": "the"}).status_code == 200
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(tmp_path / "runs" / "whole")
    (damaged / "model.safetensors").write_bytes(b"")
    assert main(["serve", "--port", "0"]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("regard: error: ")
    assert line.endswith("nor can any other be loaded")


def test_who_was_refused_has_not_left(server: Served) -> None:
    before = events(server)
    assert post(server, "v1/completions", {"prompt": "the " * 9000, "max_tokens": 1}).status_code == 400
    assert events(server) == before


def test_a_refused_echo_keeps_nobody_waiting(server: Served) -> None:
    wrong = {"prompt": "the cat", "echo": True, "logprobs": 1, "max_tokens": 1, "logit_bias": {"99999": 1}}
    assert post(server, "v1/completions", wrong).status_code == 400
    del wrong["logit_bias"]
    assert post(server, "v1/completions", wrong).status_code == 200


@pytest.mark.parametrize(
    ("head", "content"),
    [
        (b"Content-Length: %d\r\n\r\n" % len(BODY), BODY),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n3\r\n   \r\n0\r\n\r\n" % (len(BODY), BODY)),
        (b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY), BODY),
    ],
)
def test_two_requests_in_one_packet_get_two_answers(server: Served, head: bytes, content: bytes) -> None:
    """However their bodies are told, and in order."""
    one = HEAD + b"Content-Type: application/json\r\n" + head + content
    last = one.replace(b"Host: localhost\r\n", b"Host: localhost\r\nConnection: close\r\n")
    with server.connect() as line:
        line.sendall(one + last)
        found = received(line)
    assert found.count(b"HTTP/1.1 200 OK") == 2
    assert found.count(b'"object": "text_completion"') == 2


def received(line: socket.socket) -> bytes:
    found = b""
    while more := line.recv(1 << 16):
        found += more
    return found


def test_no_path_of_the_machine_stands_in_what_is_told_of_runs(server: Served) -> None:
    """Neither where a run has learnt from nor where one lies that has gone or is damaged."""
    folder = server.log.parent
    for name in ("gone", "broken"):
        shutil.copytree(folder / "runs" / "gpt", folder / "other" / name)
    with serving(folder, "runs/gpt", "other/gone", "other/broken") as other:
        shutil.rmtree(folder / "other" / "gone")
        (folder / "other" / "broken" / "config.json").write_text("{", encoding="utf-8")
        listed = other.get("api/runs")
        about = {run["name"]: run for run in listed.json()["runs"]}
        assert about["gpt"]["settings"]["data.path"] == about["gpt"]["data"][1] == "my.txt"
        assert "gone" in about["gone"]["error"]
        assert "broken" in about["broken"]["error"]
        places = [{"name": name, "offset": 0, "mark": ""} for name in about]
        answers = [listed, other.post("api/progress", {"runs": places})]
        answers += [other.post("v1/score", {"model": name, "input": "the"}) for name in about]
        answers += [other.post("v1/explain", {"model": "gpt", "input": "the", "view": "next"})]
        assert [answer.status_code for answer in answers[:2]] == [200, 200]
        assert not [answer.text for answer in answers if str(folder) in answer.text or str(folder.name) in answer.text]
