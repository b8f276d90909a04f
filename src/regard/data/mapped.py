"""Arrays that may be larger than memory: gathered in an unnamed file, mapped, and read slice by slice.

The file has no name, so that it is gone with the process however that ends. It lies where temporary files do (TMPDIR).
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from collections.abc import Iterator
from typing import IO

import numpy as np

from regard.errors import ResourceError

IN_MEMORY = 64 << 20  # bytes of an array that stays in memory
WAITING = 1 << 20  # bytes that wait to be joined: an array has a cost of its own, however short
SLICE = 16 << 20  # bytes read at a time


class Spool:
    """An array that grows at its end. Small ones stay in memory."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.size = 0
        self._waiting: list[np.ndarray] = []
        self._waits = 0
        self._parts: list[np.ndarray] = []
        self._file: IO[bytes] | None = None

    def append(self, values: np.ndarray) -> None:
        """Add values, brought to the type of the array."""
        values = values.astype(self.dtype)
        self._waiting.append(values)
        self.size += len(values)
        self._waits += values.nbytes
        if self._waits >= WAITING:
            self._join()

    def array(self) -> np.ndarray:
        """All of it: an array in memory, or one that is mapped."""
        self._join()
        if self._file is None:
            return np.concatenate([np.empty(0, self.dtype), *self._parts])
        self._file.flush()
        return np.memmap(self._file, dtype=self.dtype, mode="r")

    def _join(self) -> None:
        part = np.concatenate([np.empty(0, self.dtype), *self._waiting])
        self._waiting, self._waits = [], 0
        if self._file is None:
            self._parts.append(part)
            if self.size * self.dtype.itemsize > IN_MEMORY:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as what is mapped from it
                for one in self._parts:
                    kept(self._file, one.data)
                self._parts = []
        else:
            kept(self._file, part.data)


def kept(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write to a temporary file; where there is no room the way out is told."""
    try:
        file.write(data)
    except OSError as error:
        raise ResourceError(
            f"cannot keep prepared data in {tempfile.gettempdir()}: {error.strerror or error}; free some room or "
            f"name another folder in TMPDIR"
        ) from None


def slices(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array in parts. Of a mapped one each part leaves memory when the next is asked for."""
    step = max(1, SLICE // array.itemsize)
    for first in range(0, len(array), step):
        yield array[first : first + step]
        release(array)


def release(array: np.ndarray) -> None:
    """Let go of the pages of a mapped array that were read; they can be read again."""
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def sha256(array: np.ndarray, before: bytes = b"") -> hashlib._Hash:
    """A digest of `before` and of the bytes of an array."""
    digest = hashlib.sha256(before)
    for part in slices(array):
        digest.update(np.ascontiguousarray(part).data)
    return digest
