"""The server of the page: whom it answers, what it says to everyone, and how it refuses."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from open_lab import answering
from regard.errors import ResourceError, UsageError
from regard.explain.packed import packed
from regard.explain.thumbnails import Thumbnails
from regard.explain.view import Bars, Heat, View
from regard.serving.guard import HEADERS, LARGEST
from regard.serving.lab import Lab
from regard.training.follow import Place

WEIGHTS = np.array([[1.0, 0.0], [np.nan, 1 / 3]])
JSON = {"Content-Type": "application/json"}


class Few:
    """A provider of one run."""

    def __init__(self) -> None:
        self.made = 0

    def runs(self) -> list[dict[str, Any]]:
        return [{"name": "runs/a", "label": "a", "path": "runs/a", "model": "gpt", "task": "text"}]

    def offer(self, run: str) -> dict[str, Any]:
        return {"views": {"attention": "weights"}, "limits": {"attention": 9}, "example": "a b"}

    def tokens(self, run: str, text: str) -> int | None:
        return len(text.split())

    def view(self, run: str, name: str | None, text: str, options: Mapping[str, Any]) -> View:
        self.made += 1
        if run != "runs/a":
            raise UsageError(f"no run {run!r} here")
        if text == "bug":
            raise ZeroDivisionError("of ours")
        bars = Bars(names=["a"], values=[1.0])
        return View(text, [bars, Heat(weights=WEIGHTS)], about=dict(options), name="attention")

    def examples(self) -> dict[str, str]:
        return {"ab": "attention"}

    def example(self, name: str) -> View:
        return View(name, [Heat(weights=WEIGHTS)], name="steps")

    def progress(self, asked: Mapping[str, Place]) -> dict[str, Any]:
        return {name: {"offset": place.offset + 1, "mark": place.mark} for name, place in asked.items()}

    def lectures(self) -> list[dict[str, Any]]:
        return [{"name": "counting", "number": 1, "title": "Counting", "question": "How far?", "is_ready": False}]

    def sitting(self, name: str, again: bool) -> dict[str, Any]:
        if name != "counting":
            raise UsageError(f"unknown lecture {name!r}")
        return {"screen": int(again), "of": 2}

    def view_of_lecture(self, name: str, place: list[int], values: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "place": place, "values": values}

    def close(self) -> None:
        self.made = -1


@pytest.fixture
def few() -> Few:
    return Few()


@pytest.fixture
def server(few: Few) -> Iterator[Lab]:
    with answering(few) as made:
        yield made


def ask(
    server: Lab, path: str, question: Any = None, *, method: str = "", headers: Mapping[str, str] = JSON
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and what the answer says."""
    connection = http.client.HTTPConnection(*server.server_address, timeout=10)  # pyright: ignore[reportArgumentType]
    body = question if question is None or isinstance(question, bytes) else json.dumps(question).encode()
    connection.request(method or ("GET" if body is None else "POST"), path, body, dict(headers))
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    told = json.loads(content) if "json" in answer.headers["Content-Type"] else content
    return answer.status, dict(answer.headers), told


def test_the_server_listens_on_this_machine_alone(server: Lab) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_address[1]}/"


@pytest.mark.parametrize("path", ["/", "/web/lab.js", "/web/style.css", "/api/runs", "/nothing"])
def test_every_answer_carries_the_policy_and_is_not_kept(server: Lab, path: str) -> None:
    _, headers, _ = ask(server, path)
    assert headers.items() >= HEADERS.items()
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "Python" not in headers["Server"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost@evil", "", "[::2]"]
)
@pytest.mark.parametrize("question", [None, {"run": "runs/a"}])
def test_a_foreign_host_is_refused(server: Lab, host: str, question: Any) -> None:
    path = "/api/runs" if question is None else "/api/run"
    status, _, told = ask(server, path, question, headers=JSON | {"Host": host})
    assert status == 403
    assert set(told) == {"error"}


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "127.0.0.1"])
def test_the_names_of_this_machine_are_good_at_any_port(server: Lab, host: str) -> None:
    assert ask(server, "/api/runs", headers={"Host": host})[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://localhost:1"])
def test_a_question_of_another_page_is_refused(server: Lab, few: Few, origin: str) -> None:
    asked = {"run": "runs/a", "view": None, "text": "a", "options": {}}
    status, headers, _ = ask(server, "/api/view", asked, headers=JSON | {"Origin": origin})
    assert (status, few.made) == (403, 0)
    assert "Access-Control-Allow-Origin" not in headers
    own = server.url.rstrip("/")
    assert ask(server, "/api/view", asked, headers=JSON | {"Origin": own})[0] == 200


def test_a_form_of_another_page_cannot_ask(server: Lab) -> None:
    plain = {"Content-Type": "text/plain"}
    assert ask(server, "/api/run", {"run": "runs/a"}, headers=plain)[0] == 415
    assert ask(server, "/api/run", method="OPTIONS")[0] == 501


@pytest.mark.parametrize(
    ("question", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"a": ' + b"9" * 5000 + b"}", 400),
        (b"\xff\xfe", 400),
        ([1], 400),
        ({}, 400),
        ({"run": 1}, 400),
        ({"run": "runs/a", "text": None, "options": {}}, 400),
        ({"run": "runs/a", "text": "a", "options": []}, 400),
        ({"run": "runs/a", "text": "a", "options": {}, "view": 3}, 400),
        ({"run": "runs/none", "text": "a", "options": {}}, 400),
        ({"run": "runs/a", "text": "a" * 300_000, "options": {}}, 413),
        (b" " * (LARGEST + 1), 413),
    ],
)
def test_a_question_that_is_no_good_gets_one_clear_line(server: Lab, question: Any, status: int) -> None:
    found, _, told = ask(server, "/api/view", question)
    assert found == status
    assert set(told) == {"error"}
    assert not re.search(r"\n|sys\.", told["error"])
    assert ask(server, "/api/runs")[0] == 200  # and the server goes on


def test_a_question_without_its_length_is_refused(server: Lab) -> None:
    with socket.create_connection(server.server_address, timeout=10) as line:  # pyright: ignore[reportArgumentType]
        line.sendall(b"POST /api/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n")
        assert line.recv(1000).startswith(b"HTTP/1.1 411")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/web/../lab.py", "/web/%2e%2e/view.py", "//etc/passwd", "/web/", "/api"]
)
def test_only_the_files_of_the_page_are_served(server: Lab, path: str) -> None:
    assert ask(server, path)[0] == 404
    assert ask(server, path, {})[0] == 404


def test_a_bug_of_ours_is_told_as_one(server: Lab, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, told = ask(server, "/api/view", {"run": "runs/a", "text": "bug", "options": {}})
    assert status == 500
    assert told["error"].startswith("unexpected ZeroDivisionError: of ours")
    assert "Traceback" in capfd.readouterr().err


def test_the_questions_of_the_page_are_answered(server: Lab, few: Few) -> None:
    assert ask(server, "/api/runs")[2] == {"runs": few.runs()}
    assert ask(server, "/api/examples")[2] == {"examples": {"ab": "attention"}}
    assert ask(server, "/api/run", {"run": "runs/a"})[2] == few.offer("runs/a")
    of = {"run": "runs/a", "view": "attention", "text": "a <b>", "options": {"head": 2}}
    made = few.view("runs/a", "attention", "a <b>", {"head": 2})
    assert ask(server, "/api/view", of)[2] == json.loads(json.dumps(made.to_page()))
    assert ask(server, "/api/example", {"name": "ab"})[2]["title"] == "ab"
    asked = {"runs": [{"name": "x", "offset": 4, "mark": "m"}]}
    assert ask(server, "/api/progress", asked)[2] == {"runs": {"x": {"offset": 5, "mark": "m"}}}


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        ([1], "runs: expected at most 60, each with name, offset and mark"),
        ([{"name": "a", "offset": 0, "mark": ""}] * 61, "runs: expected at most 60, each with name, offset and mark"),
        ([{"name": 5, "offset": 0, "mark": ""}], "name: expected a text"),
        ([{"name": "a", "offset": True, "mark": ""}], "offset: expected a whole number"),
        ([{"name": "a", "offset": 0}], "mark: expected a text"),
        ("a", "runs: expected a list"),
    ],
)
def test_progress_asked_for_badly_gets_one_clear_line(server: Lab, runs: Any, told: str) -> None:
    assert ask(server, "/api/progress", {"runs": runs})[::2] == (400, {"error": told})


def test_rows_of_one_of_many_small_maps_come_in_full(server: Lab, few: Few) -> None:
    maps = np.random.default_rng(0).random((3, 2, 2)).astype(np.float32)
    told = {"places": [(1, 1), (1, 2), (2, 1)], "labels": ["1.1", "1.2", "2.1"], "names": [""] * 3}
    panel = Thumbnails(maps=maps, figures={}, highs=[1.0] * 3, **told)
    few.view = lambda *_: View("Maps", [panel, replace(panel, block=2)], name="grid")  # pyright: ignore[reportAttributeAccessIssue]
    of = {"run": "runs/a", "view": "grid", "text": "", "options": {}}
    for number in range(3):
        rows = ask(server, "/api/row", {"of": of, "panel": 0, "row": 1, "map": number})[2]
        assert rows == {"weights": packed(maps[number, 1:2])}
    for panel_number, number in ((0, 3), (0, -1), (1, 0)):
        status, _, refused = ask(server, "/api/row", {"of": of, "panel": panel_number, "row": 0, "map": number})
        assert status == 400
        assert "no map" in refused["error"]


def test_a_row_is_given_in_full_without_making_the_view_again(server: Lab, few: Few) -> None:
    of = {"run": "runs/a", "view": "attention", "text": "a", "options": {}}
    ask(server, "/api/view", of)
    assert ask(server, "/api/row", {"of": of, "panel": 1, "row": 1})[2] == {"weights": packed(WEIGHTS[1:])}
    assert few.made == 1
    assert ask(server, "/api/row", {"of": {"example": "ab"}, "panel": 0, "row": 0})[2] == {
        "weights": packed(WEIGHTS[:1])
    }
    assert ask(server, "/api/row", {"of": of, "panel": 1, "row": 0, "count": 2})[2] == {"weights": packed(WEIGHTS)}
    for panel, row in ((0, 0), (2, 0), (-1, 0), (1, 2), (1, -1), (True, 0)):
        assert ask(server, "/api/row", {"of": of, "panel": panel, "row": row})[0] == 400
    for count in (0, -1, 3, 10**30, True, "1"):
        assert ask(server, "/api/row", {"of": of, "panel": 1, "row": 0, "count": count})[0] == 400


def test_a_port_in_use_is_one_line(server: Lab) -> None:
    port = server.server_address[1]
    with pytest.raises(ResourceError, match=rf"port {port} is in use; choose another with --port"):
        Lab(Few(), port)


def test_lectures_are_listed_sat_and_asked_for_otherwise(server: Lab, few: Few) -> None:
    assert ask(server, "/api/lectures")[2]["lectures"] == few.lectures()
    assert ask(server, "/api/lecture", {"name": "counting"})[2] == {"screen": 0, "of": 2}
    assert ask(server, "/api/lecture", {"name": "counting", "again": True})[2] == {"screen": 1, "of": 2}
    asked = {"name": "counting", "place": [0, 1, 2], "values": {"head": 2}}
    assert ask(server, "/api/lecture/view", asked)[2] == asked
    evil = {"Origin": "http://evil.example"}
    assert ask(server, "/api/lecture", {"name": "counting"}, headers=JSON | evil)[0] == 403


@pytest.mark.parametrize(
    ("path", "question", "told"),
    [
        ("/api/lecture", {}, "name: expected a text"),
        ("/api/lecture", {"name": "no"}, "unknown lecture 'no'"),
        ("/api/lecture", {"name": "counting", "again": 1}, "again: expected true or false"),
        ("/api/lecture/view", {"name": "counting", "place": [0, 1], "values": {}}, "place: expected the numbers of"),
        ("/api/lecture/view", {"name": "counting", "place": [0, 1, True], "values": {}}, "place: expected the numbers"),
        ("/api/lecture/view", {"name": "counting", "place": [0, 1, 2], "values": 3}, "values: expected an object"),
    ],
)
def test_questions_about_lectures_asked_badly_get_one_clear_line(
    server: Lab, path: str, question: dict[str, Any], told: str
) -> None:
    status, _, answer = ask(server, path, question)
    assert status == 400
    assert told in answer["error"]


def test_what_runs_beside_the_page_ends_with_the_server(few: Few) -> None:
    with answering(few):
        assert few.made == 0
    assert few.made == -1
