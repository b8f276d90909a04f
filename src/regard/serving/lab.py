"""The server of `regard lab`: one page, its modules and its questions, on 127.0.0.1."""

from __future__ import annotations

import errno
import json
import sys
import traceback
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from regard.errors import RegardError, ResourceError
from regard.serving.api import Api
from regard.serving.guard import HEADERS, Refused, check_host, check_origin, question_in, read_body
from regard.serving.provider import Provider

ADDRESS = "127.0.0.1"
TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
JSON = "application/json; charset=utf-8"
GONE = (ConnectionError, TimeoutError)
PATIENCE = 30  # seconds for a browser that says nothing


class Lab(ThreadingHTTPServer):
    """The server, listening. `url` is where the page is; serve_forever() answers until shutdown()."""

    daemon_threads = True

    def __init__(self, provider: Provider, port: int = 0) -> None:
        self.api = Api(provider)
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            why = "in use" if error.errno == errno.EADDRINUSE else "not allowed to you"
            raise ResourceError(f"port {port} is {why}; choose another with --port, or any free one with 0") from None

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no failure."""
        if not isinstance(sys.exception(), GONE):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection of a browser."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "regard", ""
    timeout = PATIENCE
    server: Lab  # pyright: ignore[reportIncompatibleVariableOverride]  # the one that made it

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self._answer(lambda: self._got(path))

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        self._answer(lambda: self._posted(path))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses is told in the same form as what the page's questions meet."""
        self.close_connection = True
        self._send(code, JSON, _json({"error": message or explain or "this cannot be answered"}))

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal stays quiet."""

    def _got(self, path: str) -> tuple[str, bytes]:
        check_host(self.headers)
        if path in self.server.api.gets:
            return JSON, _json(self.server.api.gets[path]())
        if path in web_files():
            return TYPES[path.rpartition(".")[2] if path != "/" else "html"], web_files()[path]
        raise Refused(404, "there is nothing of this name")

    def _posted(self, path: str) -> tuple[str, bytes]:
        body = read_body(self.headers, self.rfile)  # pyright: ignore[reportArgumentType]  # a stream of bytes
        check_host(self.headers)
        check_origin(self.headers)
        if path not in self.server.api.posts:
            raise Refused(404, "there is nothing of this name")
        return JSON, _json(self.server.api.posts[path](question_in(body)))

    def _answer(self, make: Any) -> None:
        try:
            status, (kind, content) = 200, make()
        except Refused as error:
            status, kind, content = error.status, JSON, _json({"error": str(error)})
            # What was posted may not have been read to its end, and would be taken for the next request.
            self.close_connection = True
        except RegardError as error:
            status, kind, content = 400, JSON, _json({"error": str(error)})
        except GONE:
            raise
        except Exception as error:
            traceback.print_exc()
            message = f"unexpected {type(error).__name__}: {error} (a bug of regard; the terminal says where)"
            status, kind, content = 500, JSON, _json({"error": message})
        self._send(status, kind, content)

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@cache
def web_files() -> dict[str, bytes]:
    """Everything that can be fetched by its path: the page and its modules, and no other file."""
    found = {}
    for file in (files("regard.explain") / "web").iterdir():
        if file.name.rpartition(".")[2] in TYPES:
            found[f"/web/{file.name}"] = file.read_bytes()
    return found | {"/": found["/web/lab.html"]}


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()
