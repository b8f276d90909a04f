"""The server of `regard lab`: one page, its modules and its questions, on 127.0.0.1."""

from __future__ import annotations

import errno
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from io import BufferedReader
from socket import SHUT_RDWR, socket
from threading import Lock, Semaphore
from typing import Any

from regard.errors import RegardError, ResourceError, TooLong
from regard.serving.api import Api
from regard.serving.connection import Asker, Incoming
from regard.serving.guard import HEADERS, Refused, check_host, check_origin, path_of, question_in, read_body
from regard.serving.provider import Provider
from regard.serving.wanted import Wanted, answering

ADDRESS = "127.0.0.1"
TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
JSON = "application/json; charset=utf-8"
GONE = (ConnectionError, TimeoutError)
AT_ONCE = 64  # connections that are answered; more wait in the queue of the system
QUEUE = 512  # connections that may wait there
IN_TIME = 10.0  # seconds within which a request has come, an idle connection goes on, and an answer is taken
LONGEST_LINE = 1000  # characters of a message
LARGEST = 1 << 25  # bytes of an answer


class Lab(ThreadingHTTPServer):
    """The server, listening. `url` is where the page is; serve_forever() answers until shutdown()."""

    daemon_threads = True
    request_queue_size = QUEUE

    def __init__(self, provider: Provider, port: int = 0) -> None:
        self.api = Api(provider)
        self.places = Semaphore(AT_ONCE)
        self.idle: dict[socket, None] = {}  # in the order in which they fell silent
        self.lock = Lock()
        self.ends = False
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

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own, when there is a place for it."""
        while not self.places.acquire(timeout=0.1):
            self._close_idle()
            if self.ends:
                self.shutdown_request(request)
                return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.places.release()
            raise

    def _close_idle(self) -> None:
        """End the connection that has been silent for longest: somebody else wants its place."""
        with self.lock, suppress(StopIteration, OSError):
            next(iter(self.idle)).shutdown(SHUT_RDWR)

    @contextmanager
    def idling(self, connection: socket) -> Iterator[None]:
        """While nothing has come over a connection yet."""
        with self.lock:
            self.idle[connection] = None
        try:
            yield
        finally:
            with self.lock:
                del self.idle[connection]

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def shutdown(self) -> None:
        self.ends = True
        super().shutdown()

    def server_close(self) -> None:
        super().server_close()
        self.api.provider.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no failure."""
        if not isinstance(sys.exception(), GONE):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection of a browser."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # a request that names no version gets an answer with a status, too
    server_version, sys_version = "regard", ""
    server: Lab  # pyright: ignore[reportIncompatibleVariableOverride]  # the one that made it

    def setup(self) -> None:
        super().setup()
        self.incoming = Incoming(self.connection)
        self.received = BufferedReader(self.incoming)
        self.rfile = self.received

    def handle_one_request(self) -> None:
        """A request from its first byte on: a connection may be idle before, and has as long again for the rest."""
        self.incoming.within(IN_TIME)
        try:
            with self.server.idling(self.connection):
                self.received.peek(1)
        except TimeoutError:
            self.close_connection = True
            return
        self.incoming.within(IN_TIME)
        super().handle_one_request()

    def do_GET(self) -> None:
        self._answer(self._got)

    def do_POST(self) -> None:
        self._answer(self._posted)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses is told in the same form as what the page's questions meet."""
        self.close_connection = True
        self._send(code, JSON, _error(message or explain or "this cannot be answered"))

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal stays quiet."""

    def _got(self) -> tuple[str, bytes]:
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # nobody reads what comes after such a request
        check_host(self.headers)
        path = path_of(self.path)
        if path in self.server.api.gets:
            return JSON, _json(self.server.api.gets[path]())
        if path in web_files():
            return TYPES[path.rpartition(".")[2] if path != "/" else "html"], web_files()[path]
        raise Refused(404, "there is nothing of this name")

    def _posted(self) -> tuple[str, bytes]:
        body = read_body(self.headers, self.received)
        check_host(self.headers)
        check_origin(self.headers)
        path = path_of(self.path)
        if path not in self.server.api.posts:
            raise Refused(404, "there is nothing of this name")
        asker = Asker(self.connection, may_be_told=self.request_version == "HTTP/1.1")
        with answering(Wanted(asker.is_gone)):
            return JSON, _json(self.server.api.posts[path](question_in(body)))

    def _answer(self, make: Callable[[], tuple[str, bytes]]) -> None:
        kind = JSON
        try:
            status, (kind, content) = 200, make()
            if len(content) > LARGEST:
                raise Refused(413, f"the answer would have {len(content):,} bytes: give a shorter text")
        except Refused as error:
            status, content = error.status, _error(error)
            # What was posted may not have been read to its end, and would be taken for the next request.
            self.close_connection = True
        except TooLong as error:
            status, content = 413, _error(error, most=error.most, fits=error.fits)
        except RegardError as error:
            status, content = 400, _error(error)
        except GONE:
            raise
        except OSError as error:  # what was typed may be the path of a picture or of a series
            status, content = 400, _error(f"{error.filename or 'a file'}: {error.strerror or 'cannot be read'}")
        except Exception as error:
            traceback.print_exc()
            told = f"unexpected {type(error).__name__}: {error} (a bug of regard; the terminal says where)"
            status, content = 500, _error(told)
        self._send(status, kind if status == 200 else JSON, content)

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.connection.settimeout(IN_TIME)  # of all of the answer, not of a part of it
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


def _error(error: object, **more: Any) -> bytes:
    message = " ".join(str(error).split())
    if len(message) > LONGEST_LINE:
        message = f"{message[: LONGEST_LINE // 2]}...{message[-LONGEST_LINE // 2 :]}"
    return _json({"error": message} | more)
