"""A process that waits for the others of its training: signals end it, and so does its time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LATE = 60.0  # seconds that anything is waited for
COMMAND = """
import sys
from regard.cli.main import main
from regard.training.parallel import group
group.JOINING = float(sys.argv.pop(1))
sys.exit(main())
"""


@pytest.fixture
def first() -> Iterator[socket.socket]:
    """Where the first process would be, which says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(LATE)
        yield listening


def joining(folder: Path, rank: int, port: int, seconds: float) -> subprocess.Popen[str]:
    """One process of two that trains, and waits for the other for so many seconds."""
    (folder / "my.txt").write_text("".join(f"the cat sat on mat {i} .\n" for i in range(60)), encoding="utf-8")
    known = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2}
    known |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    words = ["train", "my.txt", "--model", "lstm", "--size", "tiny", "--budget", "2steps", "--device", "cpu"]
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(seconds), *words],
        cwd=folder,
        env=os.environ | {name: str(value) for name, value in known.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_process_that_waits_for_the_first(
    first: socket.socket, tmp_path: Path, number: int, code: int
) -> None:
    with joining(tmp_path, 1, first.getsockname()[1], 10 * LATE) as process:
        try:
            first.accept()[0].recv(1)  # it waits for an answer now
            process.send_signal(number)
            assert process.wait(LATE) == code
        finally:
            process.kill()


@pytest.mark.parametrize("rank", [0, 1])
def test_who_has_waited_for_too_long_says_so_in_a_line(first: socket.socket, tmp_path: Path, rank: int) -> None:
    port = first.getsockname()[1]
    if rank == 0:
        first.close()  # it listens there itself
    with joining(tmp_path, rank, port, 0.5) as process:
        try:
            said = process.communicate(timeout=LATE)[1]
        finally:
            process.kill()
    [line] = [line for line in said.splitlines() if "error" in line.lower()]
    told = (
        f"process {rank} of 2 cannot join the others at 127.0.0.1:{port}: after 0.5 seconds not all of them were there"
    )
    assert line.startswith(f"regard: error: {told}")
    assert process.returncode == 6
