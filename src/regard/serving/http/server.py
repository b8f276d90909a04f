"""The server as a process: it listens, starts the engine, says where it is, and ends when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from regard.errors import CheckpointError, ResourceError
from regard.serving.http.client import EngineClient
from regard.serving.http.errors import Error
from regard.serving.http.metrics import Metrics
from regard.serving.http.settings import Settings

if TYPE_CHECKING:
    import uvicorn

    from regard.serving.http.app import Server

Tell = Callable[[str, dict[str, Any], dict[str, str]], None]

BACKLOG = 512
SPARE = 1.0  # seconds of the time to end that are left for telling everybody


def serve(settings: Settings, tell: Tell) -> None:
    """Listen and answer until SIGTERM or SIGINT.

    tell: called when all is ready, with the address, the runs, and why some cannot be loaded.
    """
    listening = bound(settings.host, settings.port)
    with contextlib.closing(listening):
        asyncio.run(_serve(settings, listening, tell))


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at once, so that a port that is taken is told before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        found.close()
        if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES):
            why = "in use" if error.errno == errno.EADDRINUSE else "not allowed to you"
            raise ResourceError(f"port {port} is {why}; choose another with --port, or any free one with 0") from None
        raise ResourceError(f"--host {host}: this machine has no such address") from None
    return found


async def _serve(settings: Settings, listening: socket.socket, tell: Tell) -> None:
    engine = EngineClient(settings, Metrics())
    await engine.start()
    try:
        await _listen(settings, engine, listening, tell)
    finally:
        await engine.stop()
    if engine.gave_up.is_set():
        raise ResourceError("the engine died again and again; its log says why")


async def _listen(settings: Settings, engine: EngineClient, listening: socket.socket, tell: Tell) -> None:
    # While the engine imports torch in its process, this one imports what it needs.
    import uvicorn

    from regard.serving.http.app import Server
    from regard.serving.http.protocol import Deadlined, connections_at_once

    class Listening(uvicorn.Server):
        """uvicorn's server without its handlers of signals: who starts it says what they mean."""

        @contextlib.contextmanager
        def capture_signals(self) -> Any:
            yield

    class Bounded(Deadlined):
        """A connection of a server that may have so many files."""

        most = connections_at_once()

    server = Server(settings, engine)
    config = uvicorn.Config(
        server.application(),
        http=Bounded,
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="critical",
        server_header=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=int(settings.drain),
        backlog=BACKLOG,
    )
    http = Listening(config)
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(name, _end, server, http, settings)
    try:
        await engine.loaded()
    except (Error, TimeoutError) as error:
        raise CheckpointError(str(error) or "the engine did not answer in time") from None
    port = listening.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    tell(f"http://{host}:{port}/", engine.models, engine.failed)
    giving_up = asyncio.ensure_future(engine.gave_up.wait())
    giving_up.add_done_callback(lambda done: None if done.cancelled() else _end(server, http, settings))
    await http.serve(sockets=[listening])
    giving_up.cancel()


def _end(server: Server, http: uvicorn.Server, settings: Settings) -> None:
    """Take nothing more; what is underway has some seconds, and is handed back after them. Twice: end at once."""
    if http.should_exit:
        server.texts.end()
        http.force_exit = True
        return
    server.drain()
    asyncio.get_running_loop().call_later(max(0.0, settings.drain - SPARE), server.texts.end)
    http.should_exit = True
