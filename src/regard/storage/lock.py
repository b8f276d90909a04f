"""One writer: the lock of a folder, held by one process for as long as it lives.

The lock is `flock`: it goes when its holder dies, and it does not reach over network file systems.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import LockedError
from regard.storage import disk
from regard.storage.regular import read_regular

LOCK = ".lock"


@contextmanager
def only_writer(path: Path, own: frozenset[str] = frozenset()) -> Iterator[None]:
    """The folder at `path`, made when there is none, for this process alone until the block ends.

    A folder that was made here is taken back when the block fails and nothing but the lock and what `own` names, as
    long as that is empty, lies in it.
    """
    made, lock = list[Path](), None
    try:
        with disk.reported("make the folder", path):
            _make_folders(path, made)
            lock = disk.try_lock(path / LOCK)
        if lock is None:
            raise LockedError(f"{path}: in use by {_holder(path)}; wait for it to end or choose another --out")
        with disk.reported("write", path):
            _sign(lock)
        yield
    except LockedError:
        raise
    except BaseException:
        _remove_unused(made, own)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _make_folders(path: Path, made: list[Path]) -> None:
    """Make the folder and those above it; `made` is told of each before it is, the folder itself last."""
    missing = []
    while not path.exists():
        missing.insert(0, path)
        path = path.parent
    for folder in missing:
        made.append(folder)
        disk.make_folder(folder)
        disk.sync_folder(folder.parent)


def _remove_unused(made: list[Path], own: frozenset[str]) -> None:
    """Take back the folders made for a writer that was refused before it wrote anything."""
    if not made or not set(disk.names(made[-1])) <= {LOCK, *own} or any(disk.names(made[-1] / name) for name in own):
        return
    disk.discard(made[-1])
    with suppress(OSError):  # another folder may have come to lie beside it
        for folder in reversed(made[:-1]):
            disk.remove_folder(folder)


def _sign(lock: int) -> None:
    """Leave the holder's name in the lock file, for the message that a second writer gets."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)


def _holder(path: Path) -> str:
    try:
        text = read_regular(path / LOCK, 1000).decode(errors="replace").strip()
    except OSError:
        text = ""
    return text[:200] or "another process"
