"""Temporary folders: gone with their block, their object or their process, and never while their owner lives."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regard.storage import temporary
from regard.storage.temporary import TemporaryFolder, close_all, remove_abandoned, temporary_folder

SOURCE = Path(temporary.__file__).parents[2]
PREFIX = "regard-test-"
OWNER = """
import os, sys
from pathlib import Path
from regard.storage.temporary import TemporaryFolder
folder = TemporaryFolder(Path(sys.argv[1]), "regard-test-")
(folder.path / "file").write_text("x")
(folder.path / "below").mkdir()
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_a_folder_is_gone_when_its_block_ends_also_by_a_failure(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), temporary_folder(tmp_path, PREFIX) as folder:
        (folder / "file").write_text(str(1 // len(os.listdir(folder))))
    assert not list(tmp_path.iterdir())


def test_a_folder_is_gone_with_the_object_that_holds_it(tmp_path: Path):
    held, closed, left = (TemporaryFolder(tmp_path, PREFIX) for _ in range(3))
    (held.path / "file").write_text("x")
    assert len(list(tmp_path.iterdir())) == 3
    closed.close()
    closed.close()
    assert sorted(tmp_path.iterdir()) == sorted([held.path, left.path])
    del held
    gc.collect()
    assert list(tmp_path.iterdir()) == [left.path]
    close_all()
    assert not list(tmp_path.iterdir())


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_never(tmp_path: Path):
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        theirs = Path(child.stdout.readline().strip())
        with temporary_folder(tmp_path, PREFIX):
            assert (theirs / "file").exists(), "its owner lives"
        child.send_signal(signal.SIGKILL)
        child.wait(60)
    assert (theirs / "file").exists()
    with temporary_folder(tmp_path, "regard-other-"):
        assert theirs.exists(), "of another kind"
    with temporary_folder(tmp_path, PREFIX) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_what_only_looks_like_a_temporary_folder_is_left_alone(tmp_path: Path):
    mine, elsewhere = tmp_path / f"{PREFIX}notes", tmp_path / "elsewhere"
    mine.mkdir()
    elsewhere.mkdir()
    (elsewhere / "file").write_text("x")
    (tmp_path / f"{PREFIX}7-00000000").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}8-00000000").write_text("a file")
    remove_abandoned(tmp_path, PREFIX)
    remove_abandoned(tmp_path / "absent", PREFIX)
    assert (elsewhere / "file").exists()
    assert len(list(tmp_path.iterdir())) == 4
    assert mine.exists()


def test_a_forked_child_leaves_the_folder_to_its_parent(tmp_path: Path):
    with temporary_folder(tmp_path, PREFIX) as folder:
        child = os.fork()
        if not child:
            close_all()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert folder.exists()
