"""Every file operation of a run folder, one function each, so that tests can make each one fail in turn.

Nothing else in `training` touches the file system for writing. Durations and orders never come from the wall clock
or from a file's age.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import ResourceError
from regard.storage import held, system
from regard.storage.regular import require_regular
from regard.storage.system import flags

TEMPORARY = ".tmp-"
CHECKPOINTS = "checkpoints"
# What a process has too little of, whatever file it reads: the file is not to blame.
OF_THE_PROCESS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
# The functions that change the disk: what a fault test replaces.
OPERATIONS = (
    "make_folder",
    "create",
    "write",
    "sync",
    "close",
    "sync_folder",
    "rename",
    "replace",
    "remove",
    "remove_folder",
    "free_bytes",
)


def make_folder(path: Path) -> None:
    os.mkdir(path)


def create(path: Path) -> int:
    """A descriptor of a new file; one that exists already is an error."""
    return os.open(path, flags("WRONLY", "CREAT", "EXCL"), 0o644)


def write(descriptor: int, chunk: memoryview) -> None:
    """All of `chunk`, however many calls the system makes of it."""
    while len(chunk):
        chunk = chunk[os.write(descriptor, chunk) :]


def sync(descriptor: int) -> None:
    os.fsync(descriptor)


def close(descriptor: int) -> None:
    held.close(descriptor)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: a rename is not, until its folder is synced."""
    system.sync_folder(path)


def rename(old: Path, new: Path) -> None:
    """Give a folder its final name. Nothing may be there: POSIX would replace an empty folder without a word."""
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
    system.patiently(lambda: os.rename(old, new))


def move_folder(old: Path, new: Path) -> None:
    """Give a folder its final name for good."""
    rename(old, new)
    sync_folder(new.parent)


def replace(old: Path, new: Path) -> None:
    """Give a file its final name, in the place of the one there."""
    system.patiently(lambda: os.replace(old, new))


def remove(path: Path) -> None:
    system.patiently(lambda: os.unlink(path))


def remove_folder(path: Path) -> None:
    os.rmdir(path)


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


def names(path: Path) -> list[str]:
    """What lies in a folder, sorted; nothing when there is no folder."""
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []


def is_plain_file(path: Path) -> bool:
    """A file itself, not a link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def is_plain_folder(path: Path) -> bool:
    """A folder itself, not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock of `path` until it is closed or the process dies; None when it is taken.

    What is no regular file is refused: a link might lead to a file of somebody else.
    """
    if os.path.lexists(path):
        require_regular(path, os.lstat(path))
    descriptor = os.open(path, flags("RDWR", "CREAT", "NOFOLLOW", "NONBLOCK", "NOCTTY"), 0o644)
    try:
        # What lies there may have changed since it was looked at.
        require_regular(path, os.fstat(descriptor))
        held.lock(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def append(path: Path, data: bytes) -> None:
    """One whole write at the end of a file, so that lines of a log never interleave."""
    # A pipe in the place of a log is not waited for, and a link not followed.
    descriptor = os.open(path, flags("WRONLY", "CREAT", "APPEND", "NOFOLLOW", "NONBLOCK", "NOCTTY"), 0o644)
    try:
        write(descriptor, memoryview(data))
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """A file or a folder with what is in it. Links are removed, never followed."""
    if not is_plain_folder(path):
        remove(path)
        return
    for name in names(path):
        remove_tree(path / name)
    remove_folder(path)


def discard(path: Path) -> None:
    """Remove what a failure left behind; what cannot be removed now goes when the run folder is next claimed."""
    with suppress(OSError):
        if os.path.lexists(path):
            remove_tree(path)


def publish(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write beside, sync, rename: at every moment the name holds the old file or the new one, whole."""
    temporary = path.parent / f"{TEMPORARY}{os.getpid()}-{path.name}"
    for name in names(path.parent):
        if name.startswith(TEMPORARY) and name.endswith(f"-{path.name}"):
            _discard_abandoned(path.parent / name)
    try:
        descriptor = _create_owned(temporary)
        try:
            for chunk in chunks:
                write(descriptor, memoryview(chunk))
            sync(descriptor)
        except BaseException:
            close(descriptor)
            raise
        change_and_close(descriptor, lambda: replace(temporary, path))
        sync_folder(path.parent)
    finally:
        discard(temporary)


def change_and_close(descriptor: int, change: Callable[[], None]) -> None:
    """Rename or remove a locked file and give its lock back.

    Its lock tells others meanwhile that its owner lives. On Windows what is open keeps its name, so that it is closed
    first, and whoever opens it then keeps it.
    """
    if not system.IS_POSIX:
        close(descriptor)
        change()
        return
    try:
        change()
    finally:
        close(descriptor)


def write_for_person(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Publish a file under a name that a person gave; a failure says what to do."""
    try:
        publish(path, chunks)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ResourceError(
            f"{path}: cannot write: {reason}; free some space or name another place (what was there is as it was)"
        ) from error


def _create_owned(path: Path) -> int:
    """A descriptor of a new file that holds its lock, by which others know that its writer lives."""
    while True:
        discard(path)
        descriptor = create(path)
        with suppress(OSError):  # a file system without locks: nothing is then taken for abandoned
            held.lock(descriptor, wait=True)
        # Until it was locked somebody may have taken it for abandoned.
        if os.path.lexists(path):
            return descriptor
        close(descriptor)


def _discard_abandoned(path: Path) -> None:
    """Remove the temporary file of a writer that was killed: the lock of a living one cannot be had."""
    with suppress(OSError):
        descriptor = os.open(path, flags("RDWR", "NOFOLLOW"))
        try:
            held.lock(descriptor)
        except OSError:
            close(descriptor)
            raise
        change_and_close(descriptor, lambda: os.unlink(path))


def require_space(folder: Path, needed: int) -> None:
    """Refuse to begin a write that cannot end: a fifth more than `needed` must be free."""
    free = free_bytes(folder)
    if free < 1.2 * needed:
        raise ResourceError(
            f"{folder}: saving needs {1.2 * needed / 1e9:.3g} GB free and {free / 1e9:.3g} GB are; free some space or "
            f"choose another --out, then continue with --resume"
        )


@contextmanager
def reported(action: str, path: Path) -> Iterator[None]:
    """Turn a failure of the file system into one line: what, where, what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        where = f"{path}: cannot {action}: {reason}"
        saved = "; earlier checkpoints are intact, continue with --resume" if _has_checkpoints(path) else ""
        raise ResourceError(f"{where}; {_advice(error.errno)}{saved}") from error


def _advice(code: int | None) -> str:
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free some space or choose another --out"
    if code in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "choose a folder that may be written with --out"
    if code in OF_THE_PROCESS:
        return "raise the limit (ulimit -n) or end other programs"
    return "choose another --out" if code in (errno.ENOENT, errno.ENOTDIR, errno.ENOTSUP) else "check the disk"


def _has_checkpoints(path: Path) -> bool:
    """Whether a run folder, or one of checkpoints or in it, has a training to go on with."""
    folders = (path, path.parent) if CHECKPOINTS in (path.name, path.parent.name) else (path / CHECKPOINTS,)
    for folder in folders:
        with suppress(OSError):
            if folder.name == CHECKPOINTS and any(name.isdigit() for name in names(folder)):
                return True
    return False
