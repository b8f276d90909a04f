"""Who is let through the gate before every request, and what it tells those who are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from awaited import awaited

pytest.importorskip("starlette")

from starlette.responses import Response

from regard.serving.http.client import EngineClient
from regard.serving.http.gate import Gate
from regard.serving.http.metrics import Metrics
from regard.serving.http.settings import Settings
from regard.serving.wire import Message


def gate(**more: Any) -> Gate:
    """One before an application that has always something to say."""
    settings = Settings({"a": Path("a")}, logs=False, **more)
    return Gate(Response(b"{}"), EngineClient(settings, Metrics()), settings, frozenset())


def post(gate: Gate, path: str, target: str = "", **more: str) -> tuple[int, Any]:
    """The status of a request, and what is told. target: as the first line has it. more: headers in other words."""
    found: list[Message] = []

    async def send(message: Message) -> None:
        found.append(message)

    told = {"host": "localhost", "content-type": "application/json"} | more
    headers = [(name.encode(), value.encode()) for name, value in told.items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "client": ("127.0.0.1", 1)}
    if target:
        scope |= {"raw_path": target.encode(), "path": target}
    awaited(gate(scope, receive=None, send=send))  # pyright: ignore[reportArgumentType]
    return found[0]["status"], json.loads(found[1]["body"])


@pytest.mark.parametrize("path", ["/v1/completions", "/api/view", "/api/tokens"])
def test_every_question_to_a_model_counts_against_the_rate_of_a_key(path: str) -> None:
    full = gate(rate=3)
    for _ in range(2):
        assert post(full, "/v1/completions")[0] == 200
    assert post(full, "/api/view")[0] == 200
    assert post(full, path)[0] == 429


def test_the_page_of_the_lab_is_told_in_a_line_and_clients_in_openais_form() -> None:
    full = gate(rate=1)
    post(full, "/v1/completions")
    assert post(full, "/api/view")[1] == {"error": "more than 1 requests a minute"}
    assert post(full, "/v1/completions")[1]["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("LOCALHOST:80", None, 200),
        ("LocalHost", "http://localhost", 200),
        ("localhost", "HTTP://LOCALHOST", 200),
        ("localhost.evil.example", None, 403),
        ("LOCALHOST", "http://evil.example", 403),
    ],
)
def test_names_of_this_machine_have_no_case(host: str, origin: str | None, status: int) -> None:
    assert post(gate(), "/v1/completions", host=host, **({"origin": origin} if origin else {}))[0] == status


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost:8000/v1/completions", 200),
        ("HTTP://127.0.0.1/v1/completions", 200),
        ("http://evil.example/v1/completions", 403),
        ("http://localhost@evil.example/v1/completions", 403),
        ("http://localhost%2f.evil.example/v1/completions", 403),
        ("http:///v1/completions", 403),
    ],
)
def test_a_whole_address_is_asked_for_by_the_names_of_this_machine(target: str, status: int) -> None:
    """And counts as its path: against the rate of a key, in metrics and in the log."""
    limited = gate(rate=1)
    assert post(limited, "", target)[0] == status
    if status == 200:
        assert post(limited, "", target)[0] == 429


def test_a_whole_address_needs_a_key_as_its_path_does() -> None:
    assert post(gate(keys=("a key",)), "", "http://localhost/v1/completions")[0] == 401
