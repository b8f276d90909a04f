"""`regard lab` as a process: where it says it is, how it ends, and what it refuses."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from calling import call_here, environment

from open_lab import LONGEST, lab_process

# An answer without an end, so that a signal comes while it computes inside torch, as a model does.
BUSY = """
import sys
import torch
from regard.explain import registry

def busy(*_, **__):
    print("computes", file=sys.stderr, flush=True)
    a = torch.randn(64, 64)
    while True:
        a = torch.tanh(a @ a + a)

registry.shown = busy
"""
ENDED = 5.0  # seconds of the processor, whatever else the machine is busy with; the aim is one


def asked(url: str, path: str) -> bytes:
    with urllib.request.urlopen(f"{url}{path}", timeout=10) as answer:
        return answer.read()


def ended(process: subprocess.Popen[bytes], how: signal.Signals) -> tuple[int, bytes, bytes]:
    """What a process that gets a signal leaves, soon after it."""
    before = _of_children() + _of(process)
    process.send_signal(how)
    out, err = process.communicate(timeout=LONGEST)
    assert _of_children() - before < ENDED
    return process.returncode, out, err


def _of(process: subprocess.Popen[bytes]) -> float:
    """Seconds of the processor that it has used."""
    if not Path("/proc/self/stat").exists():
        return 0.0
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _of_children() -> float:
    """The same of all that have ended."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def test_the_page_is_served_until_ctrl_c_ends_it_quietly(here: Path) -> None:
    (here / "runs" / "a").mkdir(parents=True)
    (here / "runs" / "a" / "config.json").write_text("{}")
    with lab_process(here, environment()) as (process, told):
        assert told["runs"] == ["runs/a"]
        assert b"regard lab" in asked(told["url"], "")
        (run,) = json.loads(asked(told["url"], "api/runs"))["runs"]
        assert run["path"] == "runs/a"
        assert "error" in run  # an empty folder with a config is no run that can be used
        (here / "runs" / "b c").mkdir()
        (here / "runs" / "b c" / "config.json").write_text("{}")
        labels = [run["label"] for run in json.loads(asked(told["url"], "api/runs"))["runs"]]
        assert sorted(labels) == ["a", "b c"]
        assert ended(process, signal.SIGINT) == (0, b"", b"")


@pytest.mark.parametrize("ignores_ctrl_c", [False, True])
def test_sigterm_ends_it_quietly_also_where_ctrl_c_is_ignored(here: Path, ignores_ctrl_c: bool) -> None:
    with lab_process(here, environment(), ignores_ctrl_c=ignores_ctrl_c) as (process, told):
        assert b"regard lab" in asked(told["url"], "")
        if ignores_ctrl_c:
            process.send_signal(signal.SIGINT)
            assert b"regard lab" in asked(told["url"], "")
        assert ended(process, signal.SIGTERM) == (0, b"", b"")


@pytest.mark.parametrize("ignores_ctrl_c", [False, True])
def test_it_says_what_ends_it(here: Path, ignores_ctrl_c: bool) -> None:
    with lab_process(here, environment(), ignores_ctrl_c=ignores_ctrl_c, says="lines") as (process, told):
        end = f"kill {process.pid}" if ignores_ctrl_c else "Ctrl-C"
        assert told["said"].endswith(f"worked examples; no run was found under ./runs; {end} ends it\n")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_computes_ends_it_cleanly(here: Path, trained: Path, how: signal.Signals) -> None:
    (here / "busy.py").write_text(BUSY)
    words = (str(trained), "--import", "busy", "--device", "cpu")
    with lab_process(here, environment(PYTHONPATH=f"{environment()['PYTHONPATH']}:{here}"), *words) as (process, told):
        body = json.dumps({"run": told["runs"][0], "view": None, "text": "the cat", "options": {}}).encode()
        port = int(told["url"].rpartition(":")[2].strip("/"))
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            head = b"POST /api/view HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            line.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert process.stderr is not None
            assert process.stderr.readline() == b"computes\n"
            assert ended(process, how) == (0, b"", b"")


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


def test_a_process_with_threads_at_work_ends_with_its_exit_code_and_all_that_it_said(here: Path) -> None:
    program = (
        "import threading, torch\n"
        "from regard.cli.main import leave\n"
        "def work():\n"
        "    a = torch.randn(64, 64)\n"
        "    while True: a = torch.tanh(a @ a + a)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "print('said', end='')\n"
        "leave(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"said", b"")
