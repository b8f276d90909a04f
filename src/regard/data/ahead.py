"""Reading ahead: a large table is gone through while Python is busy with importing torch, which takes as long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.errors import RegardError

WORTH = 1 << 24  # bytes of a file that take longer than starting a thread
_begun: dict[object, tuple[threading.Thread, list[Any]]] = {}


def begin(key: object, path: str, read: Callable[[], Any]) -> None:
    """Read what `take` of the same key will ask for, in a thread of its own, where that is worth it."""
    with suppress(OSError):
        if key not in _begun and Path(path).stat().st_size >= WORTH:
            found: list[Any] = []
            thread = threading.Thread(target=_run, args=(read, found), daemon=True)
            _begun[key] = (thread, found)
            thread.start()


def take(key: object, read: Callable[[], Any]) -> Any:
    """What was begun under a key, once; else what `read` gives now, and so whatever it fails with."""
    thread, found = _begun.pop(key, (None, []))
    if thread is not None:
        thread.join()
    return found[0] if found else read()


def _run(read: Callable[[], Any], found: list[Any]) -> None:
    # A file that cannot be read is refused where it is asked for.
    with suppress(RegardError, OSError, MemoryError):
        found.append(read())
