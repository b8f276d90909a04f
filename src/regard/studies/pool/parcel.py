"""Parcels: what the processes of one command send each other, as bytes.

The only place that pickles. A parcel comes through a pipe of a process that this one started or was started by, or
through the Ray cluster that the command was pointed at; it is never a file, and never from elsewhere.
"""

from __future__ import annotations

import io
import pickle
from typing import Any


def packed(value: Any) -> bytes:
    """The bytes of a value."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def packed_if_small(value: Any, most: int) -> bytes | None:
    """The same; None where they would be more than `most`, or the value has something in it that cannot be sent."""
    taken = _Bounded(most)
    try:
        pickle.Pickler(taken, pickle.HIGHEST_PROTOCOL).dump(value)
    except Exception:  # whatever a value from outside has in it
        return None
    return taken.getvalue()


def unpacked(parcel: bytes) -> Any:
    """The value of a parcel of a process of the same command."""
    return pickle.loads(parcel)


class _Bounded(io.BytesIO):
    """A file that is given up when it gets large."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def write(self, data: Any, /) -> int:
        if self.tell() + memoryview(data).nbytes > self._most:
            raise ValueError("too large")
        return super().write(data)
