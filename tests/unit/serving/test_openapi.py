"""What the server says of itself: a description that says where all its parts are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from awaited import awaited

pytest.importorskip("fastapi")

from regard.serving.http.app import Server
from regard.serving.http.client import EngineClient
from regard.serving.http.metrics import Metrics
from regard.serving.http.settings import Settings
from regard.serving.wire import Message


def described() -> dict[str, Any]:
    """What `/openapi.json` answers."""
    settings, found = Settings({"a": Path("a")}, logs=False), list[Message]()
    app = Server(settings, EngineClient(settings, Metrics())).application()

    async def send(message: Message) -> None:
        found.append(message)

    scope = {"type": "http", "method": "GET", "path": "/openapi.json", "headers": [(b"host", b"localhost")]}
    awaited(app(scope | {"query_string": b"", "client": ("127.0.0.1", 1)}, None, send))  # pyright: ignore[reportArgumentType]
    return json.loads(b"".join(message.get("body", b"") for message in found))


def test_every_reference_leads_somewhere() -> None:
    told = described()
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(told)))
    assert {f"#/components/schemas/{name}" for name in ("ChatMessage", "ResponseFormat", "StreamOptions")} <= references
    for reference in references:
        at = told
        for name in reference.removeprefix("#/").split("/"):
            at = at[name]
        assert at["properties"]
    assert "$defs" not in json.dumps(told)


def test_what_a_path_names_is_a_parameter() -> None:
    for path, methods in described()["paths"].items():
        for about in methods.values():
            named = [one["name"] for one in about.get("parameters", []) if one["in"] == "path"]
            assert named == re.findall(r"\{(\w+)\}", path)
