"""`regard lab` as a process: where it says it is, how it ends, and what it refuses."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from calling import call_here, environment


def test_the_page_is_served_until_ctrl_c_ends_it_quietly(here: Path) -> None:
    (here / "runs" / "a").mkdir(parents=True)
    (here / "runs" / "a" / "config.json").write_text("{}")
    command = [sys.executable, "-m", "regard", "lab", "--port", "0", "--json"]
    with subprocess.Popen(
        command, cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert told["runs"] == ["runs/a"]
        with urllib.request.urlopen(told["url"], timeout=10) as page:
            assert b"regard lab" in page.read()
        with urllib.request.urlopen(f"{told['url']}api/runs", timeout=10) as answer:
            (run,) = json.load(answer)["runs"]
            assert run["path"] == "runs/a"
            assert "error" in run  # an empty folder with a config is no run that can be used
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, b"", b"")


def test_a_port_in_use_is_one_line_and_exit_code_six(here: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        outcome = call_here("lab", "--port", str(port))
    assert outcome.code == 6
    assert outcome.err == (
        f"regard: error: port {port} is in use; choose another with --port, or any free one with 0\n"
    )


def test_a_folder_without_a_run_and_a_port_that_cannot_be_are_refused(here: Path) -> None:
    (here / "empty").mkdir()
    outcome = call_here("lab", "empty")
    assert (outcome.code, outcome.err.count("\n")) == (4, 1)
    assert "empty: no run" in outcome.err
    assert call_here("lab", "--port", "70000").code == 2
