"""Regular files: the one way in which a file is opened for reading.

A named pipe would wait for ever, a device never ends: whatever is no regular file is refused before a byte is read, and
without waiting. A link to a regular file is one, unless the caller says otherwise.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

from regard.storage.system import IS_POSIX, flags

SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}
# No waiting for the other end of a pipe, and no terminal taken over.
FLAGS = flags("RDONLY", "NONBLOCK", "NOCTTY")


class NotRegular(OSError):
    """A path that leads to something other than a regular file."""

    def __init__(self, path: Path | str, kind: str) -> None:
        super().__init__(errno.EINVAL, f"is {kind}, not a regular file", str(path))


class TooLarge(OSError):
    """A file of more bytes than one of its kind has."""

    def __init__(self, path: Path | str, size: int, most: int) -> None:
        super().__init__(errno.EINVAL, f"has {size:,} bytes, too many for a file of its kind ({most:,})", str(path))


def open_regular(path: Path | str, *, links: bool = True) -> io.FileIO:
    """A regular file, open for reading without a buffer. links: whether a link to one will do."""
    require_regular(path, os.stat(path, follow_symlinks=links))
    descriptor = os.open(path, FLAGS | (0 if links else flags("NOFOLLOW")))
    try:
        # What lies there may have changed since it was looked at.
        require_regular(path, os.fstat(descriptor))
        if IS_POSIX:
            os.set_blocking(descriptor, True)
        return io.FileIO(descriptor, "rb", closefd=True)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path | str, most: int, *, links: bool = True) -> bytes:
    """All bytes of a regular file of at most `most`."""
    with open_regular(path, links=links) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise TooLarge(path, size, most)
        return file.read()


def require_regular(path: Path | str, found: os.stat_result) -> None:
    """Refuse what was found at a path unless it is a regular file."""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise NotRegular(path, SPECIAL.get(stat.S_IFMT(found.st_mode), "something else"))
