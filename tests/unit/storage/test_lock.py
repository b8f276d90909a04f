"""One writer: whoever is second, or refused, leaves the folder of the first as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regard.errors import CheckpointError, LockedError
from regard.storage import disk
from regard.storage.lock import LOCK, only_writer


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "folder"])
def test_a_lock_that_is_no_file_of_its_own_is_neither_followed_nor_written(tmp_path: Path, kind: str) -> None:
    folder, other = tmp_path / "run", tmp_path / "mine.txt"
    folder.mkdir()
    other.write_text("a letter")
    place = folder / LOCK
    if kind == "link":
        place.symlink_to(other)
    elif kind == "dangling link":
        place.symlink_to(tmp_path / "new.txt")
    elif kind == "hard link":
        os.link(other, place)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    if kind == "hard link":
        with only_writer(folder):
            pass
    else:
        with pytest.raises(CheckpointError, match=r"\.lock: is .*; move it away"), only_writer(folder):
            pytest.fail("taken")
    assert other.read_text() == "a letter"
    assert sorted(os.listdir(tmp_path)) == ["mine.txt", "run"]


@pytest.mark.parametrize("is_locked", [True, False])
def test_the_loser_of_a_race_leaves_the_folder_of_the_living_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_locked: bool
) -> None:
    path = tmp_path / "run"
    first = only_writer(path)
    real = disk.make_folder

    def late(folder: Path) -> None:
        """Another process makes the folder, and mostly locks it, after this one saw that there is none."""
        monkeypatch.setattr(disk, "make_folder", real)
        if is_locked:
            first.__enter__()
        else:
            real(folder)
        (path / "work").mkdir()
        real(folder)

    monkeypatch.setattr(disk, "make_folder", late)
    with pytest.raises(LockedError if is_locked else ZeroDivisionError), only_writer(path):
        raise ZeroDivisionError
    assert (path / "work").is_dir()
    if is_locked:
        with pytest.raises(LockedError), only_writer(path):
            pytest.fail("a second writer")
        first.__exit__(None, None, None)


def test_what_another_writer_put_there_stays_when_one_that_was_refused_takes_its_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "run", disk.remove

    def then_somebody_comes(file: Path) -> None:
        real(file)
        (path / LOCK).touch()
        (path / "own").mkdir()
        (path / "own" / "work").touch()

    monkeypatch.setattr(disk, "remove", then_somebody_comes)
    monkeypatch.setattr(os, "ftruncate", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), only_writer(path, frozenset({"own"})):
        pytest.fail("signed")
    assert (path / "own" / "work").exists()
    assert (path / LOCK).exists()


def test_a_folder_that_was_taken_away_while_its_lock_was_taken_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, taken = tmp_path / "runs" / "run", disk.try_lock, []

    def away(file: Path) -> int | None:
        if len(taken) < 2:
            taken.append(file)
            if len(taken) == 2:
                descriptor = real(file)
                file.unlink()
            path.rmdir()
            if len(taken) == 2:
                return descriptor
        return real(file)

    monkeypatch.setattr(disk, "try_lock", away)
    with only_writer(path), pytest.raises(LockedError), only_writer(path):
        pytest.fail("a second writer")
    assert os.listdir(path) == [LOCK]
