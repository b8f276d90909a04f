"""Temporary folders with an owner: what a killed process left is removed at the next start, a living one's never.

    with temporary_folder(None, "regard-counts-") as folder:      # gone with the block
    spool = TemporaryFolder(cache, "regard-tokens-")               # gone with the object, `close` or the process

The owner holds a lock of the folder, which goes when the process dies, however it dies. Before a folder is made,
those of the same prefix in the same place whose lock can be had are removed. On a file system without such locks
nothing is ever taken for abandoned.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from regard.storage import held, system

# Process and a few random digits: a folder that somebody else gave a like name is not touched.
NAME = re.compile(r"[0-9]+-[0-9a-f]{8}")
ATTEMPTS = 5  # a thread that is left behind may still be writing a file into it
_open: weakref.WeakSet[TemporaryFolder] = weakref.WeakSet()


class TemporaryFolder:
    """A new folder in `parent` (the system's for temporary files when None), as long as this object or `close` has it.

    An OSError says why there is none.
    """

    def __init__(self, parent: Path | None, prefix: str) -> None:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        remove_abandoned(place, prefix)
        self.path, lock = _owned(place, prefix)
        self._close = weakref.finalize(self, _remove, self.path, lock, os.getpid())
        _open.add(self)

    def close(self) -> None:
        """Remove the folder and what is in it. Files that are mapped live on until they are not."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def temporary_folder(parent: Path | None, prefix: str) -> Iterator[Path]:
    """A new folder in `parent`, gone when the block ends."""
    with TemporaryFolder(parent, prefix) as folder:
        yield folder.path


def remove_abandoned(parent: Path | None, prefix: str) -> None:
    """Remove the folders of dead processes; what cannot be looked at or removed is left alone."""
    place = Path(tempfile.gettempdir()) if parent is None else parent
    with suppress(OSError):
        for name in os.listdir(place):
            if name.startswith(prefix) and NAME.fullmatch(name, len(prefix)):
                with suppress(OSError):
                    _remove_if_abandoned(place / name)


def close_all() -> None:
    """Remove every temporary folder of this process, before it is left without the interpreter's own end."""
    for folder in list(_open):
        folder.close()


def _owned(place: Path, prefix: str) -> tuple[Path, int]:
    """A new folder and the descriptor that holds its lock."""
    while True:
        path = place / f"{prefix}{os.getpid()}-{os.urandom(4).hex()}"
        path.mkdir(mode=0o700)
        # Until it is locked somebody may take the folder for abandoned; then another is made.
        with suppress(FileNotFoundError):
            lock = held.open_folder(path, make=True)
            with suppress(OSError):
                held.lock(lock, wait=True)
            if path.exists() and is_in_place(lock, held.lock_of(path)):
                return path, lock
            held.close_folder(lock, path)


def _remove_if_abandoned(path: Path) -> None:
    lock = held.open_folder(path)
    try:
        held.lock(lock)
        if is_in_place(lock, held.lock_of(path)) and system.is_mine(os.fstat(lock)):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        held.close_folder(lock, path)


def is_in_place(lock: int, path: Path) -> bool:
    """Whether what is locked still is what has that name."""
    try:
        return os.path.samestat(os.fstat(lock), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove(path: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has a copy of the object, and the folder is its parent's
        for _ in range(ATTEMPTS):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                break
    held.close_folder(lock, path)
