"""A partial file: whatever is interrupted, and wherever, goes on to the same bytes, and nobody meets half of a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from regard.errors import LockedError, ResourceError, UsageError
from regard.storage import disk
from regard.storage.partial import PartialFile, partial_file

PARTS = [b"one\n", b"", b"two\nthree\n", b"four\n"]
WHOLE = b"".join(PARTS) + b"end\n"
ABOUT = {"run": "a", "limit": None}
OPERATIONS = ("create", "write", "sync", "close", "sync_folder", "replace", "remove", "append")


class Killed(BaseException):
    """The process is gone."""


def write(path: Path, *, resume: bool = False, force: bool = False, about: dict[str, Any] | None = None) -> int:
    """Write all parts, from where an earlier call stopped; how many it had written."""
    with partial_file(path, about or ABOUT, resume=resume, force=force) as file:
        begun = file.rows
        for number, part in enumerate(PARTS[begun:], begun + 1):
            file.add(part, number, f"mark {number}")
        file.finish(b"end\n")
    return begun


def test_the_name_is_there_when_the_file_is_whole_and_nothing_is_left_beside_it(tmp_path: Path):
    path = tmp_path / "a.csv"
    with partial_file(path, ABOUT, resume=False, force=False) as file:
        file.add(b"one\n", 1, "")
        assert not path.exists()
        file.finish(b"end\n")
    assert path.read_bytes() == b"one\nend\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("torn", [False, True])
def test_whatever_is_cut_short_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool):
    moment = 0
    while True:
        moment += 1
        path = tmp_path / f"{moment}.csv"
        with monkeypatch.context() as patched:
            count = fail_at(patched, moment, torn)
            with suppress(Killed):
                write(path)
        assert not path.exists() or path.read_bytes() == WHOLE, moment
        if not path.exists():
            write(path, resume=True)
            assert path.read_bytes() == WHOLE, moment
        if count[0] < moment:
            break
    assert moment > 10


def fail_at(patched: pytest.MonkeyPatch, moment: int, torn: bool) -> list[int]:
    """Let the operation of that number fail, a write in its middle; what was counted."""
    count = [0]

    def failing(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            count[0] += 1
            if count[0] == moment:
                if torn and name == "write":
                    original(arguments[0], arguments[1][: len(arguments[1]) // 2])
                raise Killed
            return original(*arguments)

        return call

    for name in OPERATIONS:
        patched.setattr(disk, name, failing(name, getattr(disk, name)))
    return count


def begun(path: Path) -> None:
    """Two parts of four."""
    with partial_file(path, ABOUT, resume=False, force=False) as file:
        file.add(PARTS[0], 1, "mark 1")
        file.add(PARTS[1] + b"half", 2, "mark 2")


def test_what_was_begun_is_neither_thrown_away_nor_mixed_with_something_else(tmp_path: Path):
    path = tmp_path / "a.csv"
    begun(path)
    with pytest.raises(UsageError, match="holds 2 rows of a call that was interrupted"):
        write(path)
    with pytest.raises(UsageError, match="another run"):
        write(path, resume=True, about={**ABOUT, "run": "b"})
    assert write(path, resume=True) == 2
    with pytest.raises(UsageError, match="is there already"):
        write(path)
    assert write(path, force=True) == 0


@pytest.mark.parametrize("damage", ["changed", "short", "log"])
def test_of_a_damaged_file_the_parts_that_are_whole_are_kept(tmp_path: Path, damage: str):
    path = tmp_path / "a.csv"
    begun(path)
    partial, log = tmp_path / "a.csv.partial", tmp_path / "a.csv.partial.log"
    if damage == "log":
        log.write_bytes(log.read_bytes()[:-5])
    else:
        partial.write_bytes(
            partial.read_bytes()[: -2 if damage == "short" else -4] + (b"HALF" if damage == "changed" else b"")
        )
    assert write(path, resume=True) == 1
    assert path.read_bytes() == WHOLE


def test_one_process_writes_at_a_time(tmp_path: Path):
    path = tmp_path / "a.csv"
    with partial_file(path, ABOUT, resume=False, force=False) as file:
        with pytest.raises(LockedError, match="is being written by another process"):
            write(path, force=True)
        file.add(b"one\n", 1, "")
        file.finish(b"")
    assert path.read_bytes() == b"one\n"


def test_a_full_disk_is_one_line_and_what_was_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.csv"

    def full(descriptor: int, chunk: memoryview) -> None:
        os.write(descriptor, chunk[:2])
        raise OSError(28, "No space left on device")

    with partial_file(path, ABOUT, resume=False, force=False) as file:
        file.add(PARTS[0], 1, "mark 1")
        monkeypatch.setattr(disk, "write", full)
        with pytest.raises(ResourceError, match=r"No space left on device.*--resume"):
            file.add(PARTS[1] or b"xyz", 2, "mark 2")
    monkeypatch.undo()
    assert write(path, resume=True) == 1
    assert path.read_bytes() == WHOLE


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_is_not_written_over(tmp_path: Path, kind: str):
    path = tmp_path / "a.csv"
    other = tmp_path / "other"
    other.write_bytes(b"kept")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        (tmp_path / "a.csv.partial").symlink_to(other)
    with pytest.raises(UsageError):
        write(path, force=True)
    assert other.read_bytes() == b"kept"


def test_a_file_of_another_form_is_made_of_the_lines_at_the_end(tmp_path: Path):
    path = tmp_path / "a.parquet"

    def convert(lines: Path, out: Path) -> None:
        out.write_bytes(lines.read_bytes().upper())

    with partial_file(path, ABOUT, resume=False, force=False) as file:
        assert isinstance(file, PartialFile)
        file.add(b"one\n", 1, "")
        file.finish(b"", convert)
    assert path.read_bytes() == b"ONE\n"
    assert list(tmp_path.iterdir()) == [path]
