"""`regard serve` as a process that a test module shares, and ways to talk to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

SOURCE = Path(__file__).parents[1] / "src"
LONGEST = 60.0  # seconds that anything is waited for


@dataclass
class Served:
    """A server. log: the file of what it has said of requests."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].strip("/"))

    def get(self, path: str, **how: Any) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=LONGEST, **how)

    def post(self, path: str, body: Any, **how: Any) -> httpx.Response:
        return httpx.post(f"{self.url}{path}", json=body, timeout=LONGEST, **how)

    def text(self, **asked: Any) -> str:
        """The text of one completion."""
        answer = self.post("v1/completions", asked)
        assert answer.status_code == 200, answer.text
        return answer.json()["choices"][0]["text"]

    def gauge(self, name: str) -> float:
        """A number of /metrics, summed over its labels."""
        lines = self.get("metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=LONGEST)


@contextlib.contextmanager
def serving(folder: Path, *words: str, **environment: str) -> Iterator[Served]:
    """`regard serve` on any free port, until the block ends."""
    log = folder / f"serve-{len(list(folder.glob('serve-*')))}.log"
    known = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "regard", "serve", "--port", "0", "--json", *words],
            cwd=folder,
            env=os.environ | known | environment,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    late = threading.Timer(LONGEST, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        said = process.stdout.readline().decode()
        late.cancel()
        assert said, log.read_text(encoding="utf-8")
        yield Served(process, json.loads(said)["url"], log)
    finally:
        late.cancel()
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LONGEST)
