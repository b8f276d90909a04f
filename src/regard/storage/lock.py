"""One writer: the lock of a folder, held by one process for as long as it lives.

The lock goes when its holder dies, and it does not reach over network file systems (held.py).
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import CheckpointError, LockedError
from regard.storage import disk, held
from regard.storage.regular import NotRegular, read_regular
from regard.storage.system import flags
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
        unused, lock = lock, None
        with suppress(OSError):  # the failure that is under way is the one to tell
            _remove_unused(path, made, own, unused)
        raise
    finally:
        if lock is not None:
            held.close(lock)


def refuse_in_use(path: Path) -> None:
    """Refuse a folder that another process writes to, before anything is done for it."""
    holder = writer_of(path)
    if holder is not None:
        raise LockedError(_told(path, holder))


def writer_of(path: Path) -> str | None:
    """The process that writes to a folder now, in words; None without one."""
    try:
        descriptor = os.open(path / LOCK, flags("RDONLY", "NOFOLLOW", "NONBLOCK", "NOCTTY"))
    except OSError:
        return None
    try:
        held.lock(descriptor, shared=True)
    except BlockingIOError:
        return _holder(path)
    except OSError:
        return None
    finally:
        held.close(descriptor)
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
        held.close(lock)
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


def _remove_unused(path: Path, made: list[Path], own: frozenset[str], lock: int | None) -> None:
    """Take back the folders made for a writer that was refused before it wrote anything, and give back its lock.

    Nothing but empty folders and the lock file goes, and that only by its holder: another writer may have come.
    """

    def clear() -> None:
        if path in made and lock is not None and set(disk.names(path)) <= {LOCK, *own}:
            for name in own & set(disk.names(path)):
                disk.remove_folder(path / name)
            disk.remove(path / LOCK)
        for folder in reversed(made):
            disk.remove_folder(folder)

    if lock is None:
        clear()
    else:
        disk.change_and_close(lock, clear)


def _sign(lock: int) -> None:
    """Leave the holder's name in the lock file, for the message that a second writer gets."""
    if os.fstat(lock).st_nlink > 1:  # its other name may be that of a file of somebody else
        return
    os.ftruncate(lock, 0)
    os.lseek(lock, 0, os.SEEK_SET)
    os.write(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode())


def _holder(path: Path) -> str:
    try:
        text = read_regular(path / LOCK, 1000).decode(errors="replace").strip()
    except OSError:
        text = ""
    return text[:200] or "another process"
