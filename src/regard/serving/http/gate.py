"""The gate before every request: who may come in, how often, and what is noted of each in log and metrics."""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
import time
import traceback
from collections import OrderedDict
from email.message import Message as Headers
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serving.guard import HEADERS, SCHEMES, Refused, check_host, check_name, check_origin
from regard.serving.http.client import EngineClient
from regard.serving.http.errors import JSON, Error
from regard.serving.http.settings import Settings

OPEN = frozenset({"/health", "/health/live", "/health/ready"})  # asked by machines that have no key
PAGES = frozenset({"/", "/lab", "/docs", "/openapi.json", "/favicon.ico"})  # and these say nothing of runs
COUNTED = ("/v1/", "/api/")  # what a model answers
MOST_BUCKETS = 4096


class Rates:
    """A bucket of requests for each key, that fills up again at `rate` a minute."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, key: str, now: float) -> None:
        """Take one request from a bucket, or refuse it."""
        if not self.rate:
            return
        left, then = self.buckets.get(key, (float(self.rate), now))
        left = min(float(self.rate), left + (now - then) * self.rate / 60)
        if left < 1:
            wait = max(1, round((1 - left) * 60 / self.rate))
            raise Error(429, f"more than {self.rate} requests a minute", code="rate_limit_exceeded", retry=wait)
        self.buckets[key] = left - 1, now
        self.buckets.move_to_end(key)
        while len(self.buckets) > MOST_BUCKETS:
            self.buckets.popitem(last=False)


class Gate:
    """An application behind checks. Whatever goes wrong inside is a line for the client and the rest for the log."""

    def __init__(self, app: ASGIApp, engine: EngineClient, settings: Settings, known: frozenset[str]) -> None:
        self.app, self.engine, self.settings, self.known = app, engine, settings, known
        self.rates = Rates(settings.rate)
        self.digests = [_digest(key.encode()) for key in settings.keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, metrics, facts = time.monotonic(), self.engine.metrics, {}
        named = _take_name(scope)
        scope["state"] = {"facts": facts}
        sent: dict[str, int] = {}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent["status"] = message["status"]
                plain = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in plain if pair[0] not in own)]
            await send(message)

        metrics.open += 1
        try:
            await self._passed(scope, receive, answer, facts, named)
        finally:
            metrics.open -= 1
            path = scope["path"] if scope["path"] in self.known else "other"
            status = sent.get("status", 499)
            metrics.requests[path, status] += 1
            metrics.events["limited"] += status == 429
            metrics.events["refused"] += status == 503
            metrics.whole.add(time.monotonic() - begun)
            self._log(scope, path, status, begun, facts)

    async def _passed(
        self, scope: Scope, receive: Receive, send: Send, facts: dict[str, Any], named: str | None
    ) -> None:
        try:
            facts["client"] = self._check(scope, named)
            scope["state"]["client"] = facts["client"] or _address(scope)
        except Refused as error:
            told = error if isinstance(error, Error) else Error(error.status, str(error))
            # The lab's page knows a refusal as a line.
            body = json.dumps({"error": str(told)}) if scope["path"].startswith("/api/") else told.body()
            await Response(body, told.status, told.headers, media_type=JSON)(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        except Exception:  # the client was told that there was one, if it could be
            traceback.print_exc()

    def _check(self, scope: Scope, named: str | None) -> str:
        """Who asks, as a name for the log; refused where they may not. named: the server, as the first line has it."""
        headers = Headers()
        for name, value in scope["headers"]:
            headers[name.decode("latin-1")] = value.decode("latin-1")
        path = scope["path"]
        if self.settings.is_local:
            check_host(headers)
            if named is not None:
                check_name(named)
        if scope["method"] == "POST":
            check_origin(headers)
        if path in OPEN:
            return "health"
        who = self._key(headers) if self.settings.keys and path not in PAGES and not path.startswith("/web/") else ""
        if path.startswith(COUNTED) and scope["method"] == "POST":
            self.rates.check(who or _address(scope), time.monotonic())
        return who

    def _key(self, headers: Headers) -> str:
        """The name of the key that a client has shown. All are compared, in the same time whatever was shown."""
        kind, _, shown = str(headers.get("Authorization", "")).partition(" ")
        # A header is bytes, those of UTF-8 where a key is more than ASCII.
        digest = _digest(shown.strip().encode("latin-1") if kind.lower() == "bearer" else b"")
        found = [number for number, one in enumerate(self.digests) if hmac.compare_digest(one, digest)]
        if not found:
            raise Error(401, "a key is needed: Authorization: Bearer KEY", code="invalid_api_key")
        return f"key {found[0] + 1}"

    def _log(self, scope: Scope, path: str, status: int, begun: float, facts: dict[str, Any]) -> None:
        """One line of JSON for each request, without a word of what was asked or answered unless that is wanted."""
        if not self.settings.logs or facts.get("client") == "health":
            return
        spent = round(1000 * (time.monotonic() - begun), 2)
        told = {"time": round(time.time(), 3), "method": scope["method"], "path": path, "status": status, "ms": spent}
        told |= {name: value for name, value in facts.items() if value != ""}
        print(json.dumps(told), file=sys.stderr, flush=True)


def _take_name(scope: Scope) -> str | None:
    """The server that a whole address in the first line names (http://localhost:8000/v1/models), if it is one; what is
    left in the scope is its path.
    """
    raw = scope.get("raw_path", b"").decode("latin-1")
    scheme, gap, rest = raw.partition("://")
    if not gap or scheme.lower() not in SCHEMES:
        return None
    name, _, path = rest.partition("/")
    scope["raw_path"], scope["path"] = f"/{path}".encode("latin-1"), unquote(f"/{path}")
    return name


def _address(scope: Scope) -> str:
    return (scope.get("client") or ("", 0))[0]


def _digest(key: bytes) -> bytes:
    """Of one length for keys of any length, so that comparing tells nothing of it."""
    return hashlib.sha256(key).digest()
