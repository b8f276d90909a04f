"""A server of the page that answers while a test runs, in this process or as one of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.serving.lab import Lab
from regard.serving.provider import Provider

LONGEST = 30.0  # seconds that anything is waited for


@contextmanager
def answering(provider: Provider) -> Iterator[Lab]:
    """The server of a provider, at any free port."""
    with Lab(provider) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(LONGEST)
            assert not thread.is_alive()


@contextmanager
def lab_process(
    cwd: Path, environment: Mapping[str, str], *words: str, ignores_ctrl_c: bool = False, says: str = "json"
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """`regard lab` as a process, and what it says of itself first. It hears Ctrl-C though the tests may not.

    It ends with the block at the latest. says: "json", or "lines" for what a person reads.
    """
    action = signal.SIG_IGN if ignores_ctrl_c else signal.SIG_DFL
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "lab", "--port", "0", *(["--json"] if says == "json" else []), *words],
        cwd=cwd,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, action),
    )
    late = threading.Timer(LONGEST, process.kill)  # what reads its output waits no longer
    late.start()
    try:
        assert process.stdout is not None
        said = process.stdout.readline().decode()
        late.cancel()
        yield process, json.loads(said) if says == "json" else {"said": said}
    finally:
        late.cancel()
        process.kill()
        process.communicate(timeout=LONGEST)
