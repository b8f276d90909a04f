"""Arrays that may be larger than memory: gathered in a file without a name, mapped, and read slice by slice.

The file has no name, so that it is gone with the process however that ends. What is mapped counts as memory while it
was touched and not let go of, so that whoever goes through an array lets go of what it has read.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from regard.errors import CheckpointError, ResourceError
from regard.storage.regular import read_regular

IN_MEMORY = 64 << 20  # bytes of an array that stays in memory, unless somebody gives it more or less room
WAITING = 1 << 20  # bytes that wait to be joined: an array has a cost of its own, however short
SLICE = 1 << 20  # numbers of an array that are read at a time
# Arrays that were mapped here, by their address: torch's view of one is found by it too.
_MAPPED: weakref.WeakValueDictionary[int, np.memmap] = weakref.WeakValueDictionary()


class Spool:
    """An array that grows at its end: in memory up to `room` bytes, then in a file without a name in `folder`.

    name  the file has this one, by which other processes find it.
    """

    def __init__(
        self,
        dtype: np.dtype | type,
        room: int | None = None,
        folder: Path | None = None,
        name: Path | None = None,
    ) -> None:
        self.dtype, self.folder, self.name = np.dtype(dtype), folder, name
        self.room = IN_MEMORY if room is None else room
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
        if self._waits >= min(WAITING, self.room):
            self._join()

    def array(self) -> np.ndarray:
        """All of it: an array in memory, or one that is mapped and may be written to."""
        self._join()
        if self._file is None:
            return np.concatenate([np.empty(0, self.dtype), *self._parts])
        self._file.flush()
        return mapped(self._file, self.dtype, "r+")

    def _join(self) -> None:
        self._parts.append(np.concatenate([np.empty(0, self.dtype), *self._waiting]))
        self._waiting, self._waits = [], 0
        if self._file is not None or self.size * self.dtype.itemsize > self.room:
            if self._file is None:
                self._file = unnamed(self.folder) if self.name is None else _made(self.name)
            for part in self._parts:
                kept(self._file, part.view(np.uint8).data, self.folder)
            self._parts = []


def joined(parts: Iterable[np.ndarray], row: tuple[int, ...] = (), dtype: np.dtype | type | str = float) -> np.ndarray:
    """Parts (n, *row) one after the other: in memory, or mapped from a file without a name where they are many."""
    spool, n = Spool(np.dtype(dtype)), 0
    for part in parts:
        spool.append(part.reshape(-1))
        n += len(part)
    # A plain view: a slice of a mapped array costs four times as much.
    return spool.array().view(np.ndarray).reshape(n, *row)


def unnamed(folder: Path | None = None) -> IO[bytes]:
    """A new file without a name, as long as somebody has it open or mapped."""
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise no_room(folder, error) from None


def _made(path: Path) -> IO[bytes]:
    try:
        return open(path, "w+b")
    except OSError as error:
        raise no_room(path.parent, error) from None


def kept(file: IO[bytes], data: bytes | memoryview, folder: Path | None = None) -> None:
    """Write to a temporary file; where there is no room the way out is told."""
    try:
        file.write(data)
    except OSError as error:
        raise no_room(folder, error) from None


def no_room(folder: Path | None, error: OSError) -> ResourceError:
    where = folder or tempfile.gettempdir()
    return ResourceError(
        f"cannot keep data in {where}: {error.strerror or error}; free some room there, or name another folder in "
        f"TMPDIR (for counting: with --spill, or allow more --memory)"
    )


def mapped(file: IO[bytes], dtype: np.dtype, mode: str = "r") -> np.ndarray:
    """The numbers in a file, read where they are touched."""
    if os.fstat(file.fileno()).st_size == 0:
        return np.empty(0, dtype)
    array = np.memmap(file, dtype, mode)  # pyright: ignore[reportCallIssue,reportArgumentType]
    _MAPPED[array.ctypes.data] = array
    return array


def as_mapped(array: np.ndarray) -> np.memmap | None:
    """The mapped array that this one is, or is another view of; None for one in memory."""
    if isinstance(array, np.memmap):
        return array
    found = _MAPPED.get(array.ctypes.data) if array.size else None
    return found if found is not None and found.nbytes == array.nbytes else None


def release(array: np.ndarray) -> None:
    """Let go of the pages of a mapped array that were touched, also by way of a part of it.

    What was written to them is kept in the file.
    """
    whole = as_mapped(array)
    while whole is None and isinstance(array.base, np.ndarray):
        array = array.base
        whole = as_mapped(array)
    if whole is not None and hasattr(mmap, "MADV_DONTNEED"):
        whole._mmap.madvise(mmap.MADV_DONTNEED)  # pyright: ignore[reportAttributeAccessIssue]


def slices(*arrays: np.ndarray, at_once: int | None = None) -> Iterator[tuple[np.ndarray, ...]]:
    """Parts of arrays of equal length, side by side. Of a mapped one each leaves memory when the next is asked for.

    at_once  numbers of the widest array that a part has; None for SLICE.
    """
    width = max(1, *(array.size // max(1, len(array)) for array in arrays))
    rows = max(1, (at_once or SLICE) // width)
    for first in range(0, len(arrays[0]), rows):
        yield tuple(array[first : first + rows] for array in arrays)
        for array in arrays:
            release(array)


def packed(array: np.ndarray) -> bytes:
    """A small array as the bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def read_packed(path: Path, largest: int) -> np.ndarray:
    """The small array in a .npy file of at most so many bytes."""
    try:
        return np.load(io.BytesIO(read_regular(path, largest)), allow_pickle=False)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(f"{path}: damaged, {error}") from None


def sha256(array: np.ndarray, before: bytes = b"") -> hashlib._Hash:
    """A digest of `before` and of the bytes of an array."""
    digest = hashlib.sha256(before)
    for (part,) in slices(array):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest
