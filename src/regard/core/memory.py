"""How much memory this process may use: what the machine has, and what its limits leave of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def host_memory() -> int:
    """Bytes that this process may use, by the machine, its own limit and that of its container."""
    limits = [_physical(), *_own_limit()]
    for path in map(Path, CGROUPS):
        text = path.read_text(encoding="utf-8").strip() if path.is_file() else "max"
        limits += [int(text)] if text.isdigit() else []
    return min(limits)


def _physical() -> int:
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _windows_memory()


def _own_limit() -> list[int]:
    """What the process was started with (`ulimit -v`), where there is such a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return []
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return [] if soft == resource.RLIM_INFINITY else [soft]


def _windows_memory() -> int:
    """Bytes of memory as GlobalMemoryStatusEx tells them: a structure of two 32-bit and seven 64-bit numbers."""
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("physical", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 6),
        )

    windows: Any = ctypes  # whose `windll` is there alone
    status = Status(length=ctypes.sizeof(Status))
    if not windows.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        raise OSError("the system does not tell how much memory it has")
    return int(status.physical)
