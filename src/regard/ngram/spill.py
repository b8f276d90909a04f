"""Arrays that do not fit in memory, as files that are gone when the work is.

What is mapped counts as memory while it was touched and not let go of, so that everything here goes through an array
from its beginning to its end and lets go of what it has read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.errors import ResourceError
from regard.storage.arrays import SLICE, as_mapped, mapped, no_room, release
from regard.storage.temporary import TemporaryFolder

PREFIX = "regard-counts-"

FEW, MANY = 16, 256  # places from which on what was touched is let go of, and an array gone through in slices


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
            return mapped(file, self.dtype)


def shipped(array: np.ndarray) -> np.ndarray | Stored:
    """An array as it goes to another process: by the name of its file, where it is one and has one."""
    whole = as_mapped(array)
    name = None if whole is None else whole.filename
    if name is None or not os.path.exists(name) or os.stat(name).st_size != array.nbytes:
        return array
    return Stored(str(name), array.dtype)


def landed(array: np.ndarray | Stored) -> np.ndarray:
    """What was shipped, in the process that it came to."""
    return array.mapped() if isinstance(array, Stored) else array


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
        raise no_room(place.parent, error) from None


def searched(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where numbers, which ascend as the keys do, have their place among the keys."""
    if as_mapped(keys) is None or len(wanted) < MANY:
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
    if as_mapped(values) is None or len(places) < MANY:
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
    if as_mapped(values) is None:
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
