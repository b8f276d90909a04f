"""The command as a process: pipes that close, signals, terminals, locales and limits."""

from __future__ import annotations

import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from calling import TEXT, TINY, call_process, environment

REGARD = (sys.executable, "-m", "regard")
LIMIT = 120


def in_terminal(*argv: str, cwd: Path, press_ctrl_c_at: str = "") -> tuple[int, str]:
    """The exit code and all that a terminal shows. With `press_ctrl_c_at`, Ctrl-C once that text has appeared."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [*REGARD, *argv],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=cwd,
        env=environment(TERM="xterm-256color", COLUMNS="100", LINES="30"),
        start_new_session=True,
        # A background job is started with Ctrl-C ignored, and its children inherit that; those of a terminal do not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(slave)
    shown = b""
    while select.select([master], [], [], LIMIT)[0]:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # the terminal's other end is gone
            break
        shown += part
        if not part:
            break
        if press_ctrl_c_at and press_ctrl_c_at.encode() in shown:
            os.killpg(child.pid, signal.SIGINT)
            press_ctrl_c_at = ""
    os.close(master)
    return child.wait(LIMIT), shown.decode()


def test_help_and_version_import_nothing_heavy():
    program = (
        "import sys, regard, regard.cli.main as cli\n"
        "assert dir(regard) == sorted(regard.__all__) and len(regard.__all__) <= 20\n"
        "code = cli.main(['train', '--help'])\n"
        "heavy = {'torch', 'numpy', 'rich', 'tokenizers', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(code or (f'imported {heavy}' if heavy else 0))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr.decode()


def test_a_first_token_waits_for_nothing_but_torch_itself(trained: Path):
    """What writes a token imports no compiler, no late part of torch and no package that draws or trains."""
    program = (
        "import sys, torch\n"
        "before = set(sys.modules)\n"
        "import regard.cli.main as cli\n"
        "code = cli.main(sys.argv[1:])\n"
        "late = set(sys.modules) - before\n"
        "heavy = {'torch._dynamo', 'torch._inductor', 'torch.distributed.fsdp', 'triton', 'matplotlib', 'PIL', 'scipy',"
        " 'pandas', 'sklearn', 'transformers', 'sacrebleu', 'http.server'} & late\n"
        "sys.exit(code or (f'imported {heavy}' if heavy else 0))"
    )
    argv = [sys.executable, "-c", program, "generate", str(trained), "the cat", "--max-tokens", "1"]
    done = subprocess.run(argv, env=environment(), capture_output=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr.decode()


def test_a_run_in_a_terminal_is_live_and_ends_with_a_card(tmp_path: Path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    code, shown = in_terminal("train", "my.txt", "--budget", "25steps", *TINY, cwd=tmp_path)
    assert code == 0, shown
    for part in (
        "gpt tiny on my.txt",
        "100%",
        "25steps",
        "tokens/s",
        "held-out loss",
        "Next:",
        "regard generate runs/gpt",
    ):
        assert part in shown
    assert "\x1b[" in shown, "it is drawn in place"


def test_ctrl_c_while_training_saves_and_says_how_to_go_on(tmp_path: Path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    code, shown = in_terminal("train", "my.txt", "--budget", "1h", *TINY, cwd=tmp_path, press_ctrl_c_at="tokens/s")
    assert code == 75, shown
    assert "regard train --resume --out runs/gpt" in shown
    assert "Traceback" not in shown
    checkpoints = sorted((tmp_path / "runs" / "gpt" / "checkpoints").iterdir())
    step = int(checkpoints[-1].name)
    resumed = call_process("train", "--resume", "--budget", f"{step + 2}steps", "--json", cwd=tmp_path)
    assert resumed.code == 0, resumed.err
    assert json.loads(resumed.out)["step"] == step + 2
    assert f"continues at step {step}" in resumed.err


def test_ctrl_c_while_generating_is_quiet(trained: Path):
    # Greedily, as a drawn text may come to its end before the key is pressed.
    argv = ("generate", str(trained), "the cat", "--max-tokens", "20000", "--temperature", "0")
    code, shown = in_terminal(*argv, cwd=trained, press_ctrl_c_at="the cat")
    assert code == 130
    assert "Traceback" not in shown
    assert "error" not in shown


def test_a_reader_that_leaves_ends_the_command_quietly(trained: Path):
    child = subprocess.Popen(
        [*REGARD, "generate", str(trained), "the cat", "--max-tokens", "1000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.read(10)
    child.stdout.close()
    assert child.wait(LIMIT) == 0
    assert child.stderr.read() == b""
    child.stderr.close()


def test_a_reader_that_leaves_does_not_end_the_training(tmp_path: Path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    command = f"{sys.executable} -m regard train my.txt --budget 40steps {' '.join(TINY)} | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=LIMIT)
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    assert (tmp_path / "runs" / "gpt" / "model.safetensors").exists()


def test_text_is_utf8_in_any_locale(trained: Path):
    outcome = call_process(
        "score", str(trained), "é", "--json", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING=""
    )
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["text"] == "é"


def test_a_closed_stdout_is_no_failure():
    command = f"{sys.executable} -m regard --help >&-"
    done = subprocess.run(["bash", "-c", command], env=environment(), capture_output=True, timeout=LIMIT)
    assert (done.returncode, done.stderr) == (0, b"")


def test_memory_that_is_not_there_is_a_resource_failure(tmp_path: Path):
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    gigabytes = 3 << 30
    wide = ("--set", "model.d_model=32768", "--set", "model.n_layers=1", "--set", "model.n_heads=8")
    for more, words in (((), "--yes-really"), (("--yes-really",), "out of memory")):
        done = subprocess.run(
            [*REGARD, "train", "my.txt", "--budget", "1steps", *TINY, *wide, *more],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            timeout=LIMIT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (gigabytes, gigabytes)),
        )
        assert done.returncode == 6, done.stderr.decode()
        assert words in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
        assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("words", ["--help", "new"])
def test_a_full_stdout_is_one_line_and_a_resource_failure(words: str, tmp_path: Path):
    command = f"{sys.executable} -m regard {words} >/dev/full"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=LIMIT)
    assert done.returncode == 6
    assert done.stderr == b"regard: error: standard output cannot be written: no space left on device\n"


def test_a_closed_stdin_is_an_empty_one(tmp_path: Path):
    command = f"{sys.executable} -m regard train - --budget 1steps <&-"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=LIMIT)
    assert done.returncode == 3
    assert done.stderr.startswith(b"regard: error: standard input is empty")
    assert done.stderr.count(b"\n") == 1


def test_a_thread_that_is_at_work_does_not_hold_up_the_end(tmp_path: Path):
    program = (
        "import sys, threading, regard.cli.main as cli\n"
        "from pathlib import Path\n"
        "from regard.storage.temporary import TemporaryFolder\n"
        "folder = TemporaryFolder(Path(sys.argv.pop()), 'regard-test-')\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--version", str(tmp_path)],
        env=environment(),
        capture_output=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b".") == 2
    assert not list(tmp_path.iterdir())
