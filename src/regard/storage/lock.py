"""One writer: the lock of a folder, held by one process for as long as it lives.

The lock is `flock`: it goes when its holder dies, and it does not reach over network file systems.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import CheckpointError, LockedError
from regard.storage import disk
from regard.storage.regular import NotRegular, read_regular
from regard.storage.temporary import is_in_place

LOCK = ".lock"
ATTEMPTS = 100  # at a folder that other writers make and take away


@contextmanager
def only_writer(path: Path, own: frozenset[str] = frozenset()) -> Iterator[None]:
    """The folder at `path`, made when there is none, for this process alone until the block ends.

    A folder that was made here is taken back when the block fails and nothing but the lock and what `own` names, as
    long as that is empty, lies in it.
    """
    made, lock = list[Path](), None
    try:
        with disk.reported("make the folder", path):
            lock = _locked(path, made)
        if lock is None:
            raise LockedError(_told(path, _holder(path)))
        with disk.reported("write", path):
            _sign(lock)
        yield
    except LockedError:
        raise
    except BaseException:
        _remove_unused(path, made, own, holds_lock=lock is not None)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def refuse_in_use(path: Path) -> None:
    """Refuse a folder that another process writes to, before anything is done for it."""
    holder = writer_of(path)
    if holder is not None:
        raise LockedError(_told(path, holder))


def writer_of(path: Path) -> str | None:
    """The process that writes to a folder now, in words; None without one."""
    try:
        descriptor = os.open(path / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(path)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None


def _told(path: Path, holder: str) -> str:
    return f"{path}: in use by {holder}; wait for it to end or choose another --out"


def _locked(path: Path, made: list[Path]) -> int | None:
    """The descriptor that holds the lock of a folder, which is made when there is none; None when it is taken.

    Another writer that was refused may take the folder or the lock file away in the middle: then all begins anew.
    """
    for _ in range(ATTEMPTS):
        try:
            _make_folders(path, made)
            lock = disk.try_lock(path / LOCK)
        except FileNotFoundError:
            continue
        except (NotRegular, IsADirectoryError) as error:
            kind = "is a folder" if isinstance(error, IsADirectoryError) else error.strerror
            raise CheckpointError(f"{path / LOCK}: {kind}; move it away") from None
        if lock is None or is_in_place(lock, path / LOCK):
            return lock
        os.close(lock)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _make_folders(path: Path, made: list[Path]) -> None:
    """Make the folder and those above it; `made` is told of each before it is, the folder itself last."""
    missing = []
    while not path.exists():
        missing.insert(0, path)
        path = path.parent
    for folder in missing:
        if folder not in made:
            made.append(folder)
        try:
            disk.make_folder(folder)
        except FileExistsError:
            made.remove(folder)  # another writer was faster: the folder is its own
            continue
        disk.sync_folder(folder.parent)


def _remove_unused(path: Path, made: list[Path], own: frozenset[str], *, holds_lock: bool) -> None:
    """Take back the folders made for a writer that was refused before it wrote anything.

    Nothing but empty folders and the lock file goes, and that only by its holder: another writer may have come.
    """
    with suppress(OSError):
        if path in made and holds_lock and set(disk.names(path)) <= {LOCK, *own}:
            for name in own & set(disk.names(path)):
                disk.remove_folder(path / name)
            disk.remove(path / LOCK)
        for folder in reversed(made):
            disk.remove_folder(folder)


def _sign(lock: int) -> None:
    """Leave the holder's name in the lock file, for the message that a second writer gets."""
    if os.fstat(lock).st_nlink > 1:  # its other name may be that of a file of somebody else
        return
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)


def _holder(path: Path) -> str:
    try:
        text = read_regular(path / LOCK, 1000).decode(errors="replace").strip()
    except OSError:
        text = ""
    return text[:200] or "another process"
