"""Arrays that do not fit in memory, as files in a folder that is gone when the work is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from regard.errors import ResourceError
from regard.storage.temporary import TemporaryFolder

PREFIX = "regard-counts-"


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


def written(pieces: Iterable[Sequence[np.ndarray]], kinds: Sequence[np.dtype], place: Path) -> list[np.ndarray]:
    """Arrays of these number types, of which each piece holds a part, joined in files and mapped."""
    names = [f"{place}-{j}" for j in range(len(kinds))]
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(open(name, "wb")) for name in names]
            for piece in pieces:
                for file, array in zip(files, piece, strict=True):
                    file.write(np.ascontiguousarray(array).view(np.uint8).data)
        return [_mapped(name, kind) for name, kind in zip(names, kinds, strict=True)]
    except OSError as error:
        raise ResourceError(
            f"cannot write counts to {place.parent}: {error.strerror or error}; free space there, name another folder "
            f"with --spill, or allow more --memory"
        ) from None


def _mapped(name: str, kind: np.dtype) -> np.ndarray:
    """A file as an array that is read where it is touched.

    torch maps it, as numpy's map keeps a descriptor open: many runs would need more of them than a process may have.
    """
    import torch

    array = torch.from_file(name, shared=True, size=os.stat(name).st_size, dtype=torch.uint8).numpy().view(kind)
    array.flags.writeable = False
    return array
