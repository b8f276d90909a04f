"""`regard lab`: a page on which runs are looked into."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sized
from typing import Annotated

import typer

from regard.cli.options import Common, CommonOnDevice, command
from regard.errors import UsageError

PORT = 8642


def add_to(app: typer.Typer) -> None:
    command(app, "lab")(lab)


def lab(
    common: CommonOnDevice,
    runs: Annotated[
        list[str] | None, typer.Argument(help="Run folders; those under ./runs without any.", metavar="[RUN]...")
    ] = None,
    port: Annotated[int, typer.Option(help="0 takes any free one.", metavar="N")] = PORT,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Look into runs on a page of this machine.

    Worked examples, attention, gates, states and learning curves. Nothing leaves the machine; Ctrl-C ends it.
    """
    if not 0 <= port < 65536:
        raise UsageError(f"--port: expected a number from 0 to 65535, found {port}")
    serve_page(common, runs or [], port, "" if opens else None, device=common.device or "auto")


def serve_page(common: Common, named: list[str], port: int, opened: str | None, device: str = "auto") -> None:
    """Serve until Ctrl-C. opened: the place on the page that the browser opens, such as #show=counting, or none."""
    from regard.serving.lab import Lab
    from regard.serving.provider import RunProvider
    from regard.serving.shelf import found_runs

    paths = found_runs(named)
    provider = RunProvider(lambda: found_runs(named, strict=False), device)
    with Lab(provider, port) as server, contextlib.suppress(KeyboardInterrupt), _ended_by_sigterm():
        url = server.url + (opened or "")
        common.screen.object({"url": url, "runs": list(paths)})
        common.screen.line(url if common.quiet else f"{url} shows {_count(paths)}; {_end()} ends it")
        sys.stdout.flush()
        if opened is not None:
            import webbrowser

            webbrowser.open(url)
        server.serve_forever()


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end() -> str:
    """What ends the server: started with nohup, or in the background of a script, it does not hear Ctrl-C."""
    return f"kill {os.getpid()}" if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else "Ctrl-C"


def _count(paths: Sized) -> str:
    if not paths:
        return "worked examples; no run was found under ./runs"
    return "one run and the worked examples" if len(paths) == 1 else f"{len(paths)} runs and the worked examples"
