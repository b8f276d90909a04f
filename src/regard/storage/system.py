"""What files can do on this system: the flags of `os.open`, the names that can be replaced, folders that can be synced.

Linux and macOS have all of it. Windows opens no folders, translates the ends of lines unless told otherwise, and
neither renames a file that is open nor replaces one that somebody reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

# Whether a file that is open can be renamed or removed, and a folder opened.
IS_POSIX = os.name == "posix"
WAITS = (0.01, 0.03, 0.1, 0.3, 1.0)  # seconds between attempts at a file that another process has open for a moment


def flags(*names: str) -> int:
    """The named flags of `os.open` that this system has, for bytes as they are and not for child processes.

    Where there is no NOFOLLOW a link is refused by a look at what lies there before it is opened.
    """
    return sum(getattr(os, f"O_{name}", 0) for name in {*names, "CLOEXEC", "NOINHERIT", "BINARY"})


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable; Windows writes them down by itself and opens no folder."""
    if not IS_POSIX:
        return
    descriptor = os.open(path, flags("RDONLY", "DIRECTORY"))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def patiently(change: Callable[[], None]) -> None:
    """Change a name; where files that are open keep theirs, wait a little for whoever reads them.

    A reader of a run folder has a file open for milliseconds, a virus scanner too.
    """
    for wait in () if IS_POSIX else WAITS:
        try:
            return change()
        except PermissionError:
            time.sleep(wait)
    return change()


def is_mine(found: os.stat_result) -> bool:
    """Whether what was found is this user's; Windows tells no owner, and its own folders are closed to others."""
    return found.st_uid == os.geteuid() if IS_POSIX else True
