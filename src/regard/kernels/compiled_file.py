"""The file of a compiled library: where it is kept, and whether it is still as the user's own process wrote it.

A library is loaded into the process, so a file that somebody else could have written is not. It lies in a folder that
the user alone may write to. The folders above may be others' too, as the cache of data is under some umasks: whoever
puts a folder in the place of this one owns it, and it is refused.

The last bytes of the file are the digest of those before. Loading half a file, as a crash leaves one, would end the
process.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Where compiled libraries are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "regard" / "compiled"


def current_user() -> int:
    """Who this process is, on the systems that compile."""
    return os.geteuid()


def is_kept(path: Path, user: int) -> bool:
    """Whether a library is there as it was written, and by nobody but this user."""
    try:
        return is_own(path.parent, user) and is_own(path, user) and _is_whole(path)
    except FileNotFoundError:
        return False


def is_own(path: Path, user: int) -> bool:
    """Whether nobody else could have put this there."""
    found = path.lstat()
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid == user and not shared and not stat.S_ISLNK(found.st_mode)


def require_own(path: Path, user: int) -> None:
    if not is_own(path, user):
        raise RuntimeError(f"{path}: others may write to it")


def publish(made: Path, path: Path) -> None:
    """Give a new library its name in the same file system, in the place of the one there, once it is on the disk."""
    with made.open("r+b") as file:
        digest = _digest(file.read())
        file.write(digest)
        file.flush()
        os.fsync(file.fileno())
    made.chmod(0o700)
    os.replace(made, path)


def _is_whole(path: Path) -> bool:
    content = path.read_bytes()
    return _digest(content[:-DIGEST]) == content[-DIGEST:]


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
