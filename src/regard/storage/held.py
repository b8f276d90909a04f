"""Locks of open files: held by one process, and gone with it however it ends.

`flock` on Linux and macOS, a locked byte on Windows. A lock of Windows keeps others from reading what it covers, so
that the byte lies where no file of ours reaches; it knows no lock for several, so that two who only look may take each
other for a writer for a moment. Neither reaches over network file systems.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.storage.system import IS_POSIX, flags

BYTE = 0x7FFF_0000  # beyond the end of every lock file, and within a 32-bit offset
BESIDE = ".lock"  # what a folder's lock file is called where a folder cannot be locked itself


def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> None:
    """Take the lock of an open file until `close`; BlockingIOError where another has it and it is not waited for."""
    if IS_POSIX:
        import fcntl

        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
        return
    windows = _windows()
    try:
        _locking(descriptor, windows.LK_LOCK if wait else windows.LK_NBLCK)
    except PermissionError as error:
        raise BlockingIOError(error.errno, "locked by another process") from None


def close(descriptor: int) -> None:
    """Close a file that may be locked, and give its lock back at once: Windows takes its time with what is closed."""
    if not IS_POSIX:
        with suppress(OSError):  # it was not locked
            _locking(descriptor, _windows().LK_UNLCK)
    os.close(descriptor)


def open_folder(path: Path, *, make: bool = False) -> int:
    """A descriptor whose lock is that of a folder: of the folder itself, or of a file beside it on Windows.

    make: whether the folder is new, and the file to be made. Without a folder there is no lock to be had.
    """
    if IS_POSIX:
        return os.open(path, flags("RDONLY", "DIRECTORY", "NOFOLLOW"))
    return os.open(lock_of(path), flags("RDWR", "CREAT") if make else flags("RDWR"))


def lock_of(path: Path) -> Path:
    """What is locked for a folder."""
    return path if IS_POSIX else path.with_name(path.name + BESIDE)


def close_folder(descriptor: int, path: Path) -> None:
    """Give back the lock of a folder that is gone; the file beside it goes too."""
    close(descriptor)
    if not IS_POSIX and not path.exists():
        lock_of(path).unlink(missing_ok=True)


def _locking(descriptor: int, mode: int) -> None:
    """Change the lock of the byte, which is the one at the file's position; that stays as it was."""
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, BYTE, os.SEEK_SET)
    try:
        _windows().locking(descriptor, mode, 1)
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


def _windows() -> Any:
    import msvcrt

    return msvcrt
