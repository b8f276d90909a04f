"""A process that has of the system what Windows has, as far as Linux can be made to look so.

    python tests/windows.py '[["train", "world:stories"], ["show", "run"]]'

runs commands one after the other and prints their exit codes. The modules, flags, signals and functions that Windows
lacks are gone before regard is imported, `msvcrt` is there, files that are open or mapped keep their names, and whoever
leaves the encoding of a file to the system fails. What other packages make of Windows is theirs: they come before.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import json
import os
import select
import signal
import socket
import struct
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

LACKING = {"fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog", "readline", "curses", "posix"}
FUNCTIONS = ("sysconf", "geteuid", "getuid", "pwrite", "pread", "fork", "set_blocking", "killpg", "getpgid")
FLAGS = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_DIRECTORY", "O_SYNC", "O_DSYNC")
SIGNALS = ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGQUIT", "SIGCHLD", "SIGCONT", "SIGSTOP")


def make_windows() -> None:
    """Take away what Windows lacks, and put there what it has."""
    locks = lock_module()
    real_import = builtins.__import__

    def without_posix(name: str, *rest: Any, **named: Any) -> Any:
        if name in LACKING and _asks_from_regard(sys._getframe(1)):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real_import(name, *rest, **named)

    builtins.__import__ = without_posix
    sys.modules["msvcrt"] = locks
    ctypes.windll = types.SimpleNamespace(kernel32=types.SimpleNamespace(GlobalMemoryStatusEx=memory_told))
    for module, names in ((os, FUNCTIONS), (os, FLAGS), (signal, SIGNALS), (select, ("poll",))):
        for name in names:
            delattr(module, name) if hasattr(module, name) else None
    del socket.MSG_DONTWAIT
    for name in ("rename", "replace", "unlink"):
        setattr(os, name, _kept_while_open(getattr(os, name)))
    warnings.filterwarnings("error", category=EncodingWarning, module=r"regard\b.*")
    os.name = "nt"
    from regard.storage import system

    os.name = "posix"  # paths are those of the system that is really there
    assert not system.IS_POSIX


def lock_module() -> types.ModuleType:
    """`msvcrt` with the locks of Windows: of one byte, of one open file, kept from all others."""
    import fcntl

    found: Any = types.ModuleType("msvcrt")
    found.LK_UNLCK, found.LK_LOCK, found.LK_NBLCK = 0, 1, 2

    def locking(descriptor: int, mode: int, count: int) -> None:
        assert count == 1
        assert os.lseek(descriptor, 0, os.SEEK_CUR) > 1 << 20, "the byte lies where it keeps nobody from reading"
        try:
            fcntl.flock(descriptor, fcntl.LOCK_UN if mode == found.LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    found.locking = locking
    return found


def memory_told(status: Any) -> int:
    """GlobalMemoryStatusEx on a machine of 16 GiB: MEMORYSTATUSEX is 64 bytes whose size is told in front."""
    place = ctypes.addressof(status._obj)
    assert struct.unpack("<I", ctypes.string_at(place, 4)) == (64,)
    ctypes.memmove(place, struct.pack("<IIQ", 64, 50, 16 << 30), 16)
    return 1


def _asks_from_regard(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("regard")


def _kept_while_open(change: Callable[..., None]) -> Callable[..., None]:
    """An operation on names that fails, as there, where one of the files is open or mapped."""

    def changed(*paths: Any, **options: Any) -> None:
        for path in map(os.path.realpath, paths):
            if path in (used := _used()) or any(one.startswith(f"{path}{os.sep}") for one in used):
                raise PermissionError(errno.EACCES, "The process cannot access the file", path)
        change(*paths, **options)

    return changed


def _used() -> set[str]:
    """The files that this process has open or mapped."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:  # the one that the listing was read with
            continue
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return found | {line.split(maxsplit=5)[5].strip() for line in maps if len(line.split(maxsplit=5)) == 6}


def main() -> None:
    import numpy  # noqa: F401
    import rich.progress  # noqa: F401
    import tokenizers  # noqa: F401
    import torch  # noqa: F401
    import typer  # noqa: F401

    make_windows()
    from regard.cli.main import main as command
    from regard.cli.main import use_utf8

    use_utf8()
    for arguments in json.loads(sys.argv[1]):
        print(f"exit {command(arguments)}", flush=True)


if __name__ == "__main__":
    main()
