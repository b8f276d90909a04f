"""Failures as a terminal shows them."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.failure import report, telling
from regard.cli.main import main
from regard.errors import CheckpointError, DataError, LockedError, NumericError, ResourceError, Stopped, UsageError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (DataError("x"), 3),
        (CheckpointError("x"), 4),
        (NumericError("x"), 5),
        (ResourceError("x"), 6),
        (LockedError("x"), 7),
        (Stopped("x"), 75),
        (MemoryError(), 6),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"), 6),
        (RuntimeError("CUDA out of memory. Tried to allocate"), 6),
        (RuntimeError("unable to mmap 8 bytes from file </x>: Cannot allocate memory (12)"), 6),
        (RuntimeError("can't start new thread"), 6),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 6),
        (OSError(errno.EMFILE, "Too many open files", "/x"), 6),
        (OSError(errno.EBADF, "Bad file descriptor"), 6),
        (OSError(errno.ENOSPC, "No space left on device"), 6),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), 6),
        (OSError(errno.EROFS, "Read-only file system", "/x"), 6),
        (OSError(errno.ENAMETOOLONG, "File name too long", "/x"), 2),
        (ValueError("a\nb"), 1),
    ],
)
def test_a_failure_is_one_line_with_its_code(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]):
    assert report(error, debug=False) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("regard: ")
    assert err.count("\n") == 1
    assert ("a bug of regard" in err) == (code == 1)


def test_files_that_a_shell_made_of_a_pattern_are_told_the_way_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for one in ("a.txt", "b.txt"):
        (tmp_path / one).write_text("text")
    assert main(["train", str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]) == 2
    assert "b.txt: name a folder, or put a pattern in quotes ('*.txt')" in capsys.readouterr().err
    assert main(["train", "a.txt", "--model", "gpt", "nowhere"]) == 2
    assert "Got unexpected extra argument" in capsys.readouterr().err


def test_what_a_process_has_too_little_of_is_not_blamed_on_a_path(capsys: pytest.CaptureFixture[str]):
    for error, words in (
        (OSError(errno.EMFILE, "Too many open files", "/x"), "ulimit -n"),
        (RuntimeError("can't start new thread"), "threads"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out of memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "standard output"),
    ):
        report(error, debug=False)
        err = capsys.readouterr().err
        assert words in err
        assert "choose another path" not in err


@pytest.mark.parametrize("code", [129, 143])
def test_a_signal_says_nothing_and_keeps_its_code(code: int, capsys: pytest.CaptureFixture[str]):
    assert report(SystemExit(code), debug=False) == code
    assert capsys.readouterr() == ("", "")


def test_a_bug_names_its_type_and_asks_for_debug(capsys: pytest.CaptureFixture[str]):
    report(ZeroDivisionError("division by zero"), debug=False)
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err
    assert "--debug" in err


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]):
    try:
        raise DataError("bad text")
    except DataError as error:
        report(error, debug=True)
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_one_line_with_what_it_leaves(capsys: pytest.CaptureFixture[str]):
    assert report(KeyboardInterrupt(), debug=False) == 130
    assert capsys.readouterr() == ("", "regard: stopped\n")
    with pytest.raises(KeyboardInterrupt) as told, telling(lambda: "nothing was written"):
        raise KeyboardInterrupt
    assert report(told.value, debug=False) == 130
    assert capsys.readouterr() == ("", "regard: stopped; nothing was written\n")


def test_ctrl_c_is_told_by_the_first_of_several_processes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of those on one machine that have not met yet, which all hear it."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("LOCAL_RANK", rank)
        assert report(KeyboardInterrupt(), debug=False) == 130
    assert capsys.readouterr().err == "regard: stopped\n"


def test_who_leaves_in_the_middle_of_shared_work_leaves_no_semaphores() -> None:
    """Of which the process that watches over them would tell on the same terminal."""
    script = (
        "from regard.cli.main import leave\n"
        "from regard.core.workers import open_workers\n"
        "workers = open_workers(2)\n"
        "next(workers.map(abs, range(100)))\n"
        "workers.close(at_once=True)\n"
        "leave(130)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, "")
