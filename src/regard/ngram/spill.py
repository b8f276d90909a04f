"""Arrays that do not fit in memory, as files that are gone when the work is.

What is mapped counts as memory while it was touched and not let go of, so that everything here goes through an array
from its beginning to its end and lets go of what it has read.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from regard.errors import ResourceError
from regard.storage.temporary import TemporaryFolder

PREFIX = "regard-counts-"

SLICE = 1 << 20  # numbers of an array that are read at a time
FEW, MANY = 16, 256  # places from which on what was touched is let go of, and an array gone through in slices
# Arrays that were mapped here, by their address: torch's view of one is found by it too.
_MAPPED: weakref.WeakValueDictionary[int, np.memmap] = weakref.WeakValueDictionary()


@contextmanager
def spill_folder(folder: Path | None) -> Iterator[Path]:
    """A new folder for runs, inside `folder`, until the block ends: a file that is mapped outlives its name."""
    try:
        made = TemporaryFolder(folder, PREFIX)
    except OSError as error:
        raise ResourceError(
            f"cannot make a folder for counting in {folder or tempfile.gettempdir()}: {error.strerror}; name another "
            f"with --spill"
        ) from None
    with made:
        yield made.path


@dataclass(frozen=True)
class Stored:
    """An array in a file, of which slices are read: many need neither memory nor an open file."""

    name: str
    dtype: np.dtype

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def __len__(self) -> int:
        return os.stat(self.name).st_size // self.itemsize

    def __getitem__(self, part: slice) -> np.ndarray:
        start, stop, _ = part.indices(len(self))
        return np.fromfile(self.name, self.dtype, max(0, stop - start), offset=start * self.itemsize)

    def mapped(self) -> np.ndarray:
        """All of it, read where it is touched. It stays when the file is removed."""
        with open(self.name, "rb") as file:
            return _mapped(file, self.dtype, "r")


def written(pieces: Iterable[Sequence[np.ndarray]], kinds: Sequence[np.dtype], place: Path) -> list[Stored]:
    """Arrays of these number types, of which each piece holds a part, joined in files."""
    names = [f"{place}-{j}" for j in range(len(kinds))]
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(open(name, "wb")) for name in names]
            for piece in pieces:
                for file, array in zip(files, piece, strict=True):
                    file.write(np.ascontiguousarray(array).view(np.uint8).data)
        return [Stored(name, kind) for name, kind in zip(names, kinds, strict=True)]
    except OSError as error:
        raise _no_room(place.parent, error) from None


class Spool:
    """An array that grows at its end: in memory up to `room` bytes, then in a file without a name in `folder`."""

    def __init__(self, kind: np.dtype | type, room: int, folder: Path | None) -> None:
        self.kind, self.room, self.folder = np.dtype(kind), room, folder
        self._parts: list[np.ndarray] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def append(self, values: np.ndarray) -> None:
        self._parts.append(values.astype(self.kind))
        self._size += len(values)
        if self._file is not None or self._size * self.kind.itemsize > self.room:
            self._write()

    def array(self) -> np.ndarray:
        """All of it; what is mapped may be written to."""
        if self._file is None:
            return np.concatenate([np.empty(0, self.kind), *self._parts])
        self._file.flush()
        return _mapped(self._file, self.kind, "r+")

    def _write(self) -> None:
        try:
            # Without a name it is gone with the process, however that ends.
            self._file = self._file or tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115  # closed with the map
            for part in self._parts:
                self._file.write(part.view(np.uint8).data)
        except OSError as error:
            raise _no_room(self.folder or Path(tempfile.gettempdir()), error) from None
        self._parts = []


def release(array: np.ndarray) -> None:
    """Let go of the pages of a mapped array that were touched; what was written to them is kept in the file."""
    whole = array if isinstance(array, np.memmap) else _known(array)
    if whole is not None and hasattr(mmap, "MADV_DONTNEED"):
        whole._mmap.madvise(mmap.MADV_DONTNEED)  # pyright: ignore[reportAttributeAccessIssue]


def slices(*arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Parts of arrays of equal length, side by side."""
    for first in range(0, len(arrays[0]), SLICE):
        yield tuple(array[first : first + SLICE] for array in arrays)
        for array in arrays:
            release(array)


def searched(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where numbers, which ascend as the keys do, have their place among the keys."""
    if _known(keys) is None or len(wanted) < MANY:
        return _let_go(keys, keys.searchsorted(wanted))
    found = np.full(len(wanted), len(keys))
    first = 0
    for start in range(0, len(keys), SLICE):
        part = keys[start : start + SLICE]
        last = int(wanted.searchsorted(part[-1], side="right"))
        found[first:last] = start + part.searchsorted(wanted[first:last])
        first = last
        release(keys)
    return found


def taken(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The values at places that ascend."""
    if _known(values) is None or len(places) < MANY:
        return _let_go(values, values.take(places))
    found = np.empty(len(places), values.dtype)
    for part in _near(places):
        found[part] = values.take(places[part])
        release(values)
    return found


def add(values: np.ndarray, places: np.ndarray, amounts: np.ndarray) -> None:
    """Add to the values at different places that ascend."""
    for part in _near(places):
        values[places[part]] += amounts[part].astype(values.dtype)
        release(values)


def gathered(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The values at places in any order."""
    if _known(values) is None:
        return values[places]
    order = places.argsort()
    found = np.empty(len(places), values.dtype)
    found[order] = taken(values, places[order])
    return found


def _near(places: np.ndarray) -> Iterator[slice]:
    """Places that ascend, in parts that lie within a slice of an array."""
    first = 0
    while first < len(places):
        last = int(places.searchsorted(places[first] + SLICE))
        yield slice(first, last)
        first = last


def _let_go(array: np.ndarray, found: np.ndarray) -> np.ndarray:
    if len(found) >= FEW:
        release(array)
    return found


def _known(array: np.ndarray) -> np.memmap | None:
    found = _MAPPED.get(array.ctypes.data) if array.size else None
    return found if found is not None and found.nbytes == array.nbytes else None


def _mapped(file: IO[bytes], kind: np.dtype, mode: str) -> np.ndarray:
    if os.fstat(file.fileno()).st_size == 0:
        return np.empty(0, kind)
    array = np.memmap(file, kind, mode)  # pyright: ignore[reportCallIssue,reportArgumentType]
    _MAPPED[array.ctypes.data] = array
    return array


def _no_room(where: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"cannot write counts to {where}: {error.strerror or error}; free space there, name another folder with "
        f"--spill, or allow more --memory"
    )
