"""Pictures in one array, the `images` of an .npz: refused by its header before anything of its size is unpacked."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from regard.data.unpack import most_unpacked, too_much
from regard.errors import DataError, RegardError, ResourceError
from regard.storage.regular import NotRegular, open_regular

# Beyond it a small file may be a bomb that fills the memory when it is unpacked.
PIXEL_LIMIT = 1 << 26


@contextmanager
def good(array: Path) -> Iterator[None]:
    """What a damaged .npz raises, in one line."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"there is no file {array}") from None
    except KeyError:
        raise DataError(f"{array} holds no array called images: write it with np.savez(file, images=...)") from None
    except MemoryError:
        raise ResourceError(f"{array} does not fit into the memory: give fewer or smaller pictures") from None
    except PermissionError:
        raise ResourceError(f"cannot read {array}: check its permissions") from None
    except NotRegular as error:
        raise DataError(f"{array} {error.strerror}") from None
    except RegardError:
        raise
    # What a damaged archive raises depends on where it is: OSError, EOFError, struct.error, zlib.error and more.
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{array} is no good .npz file ({reason}); copy or download it again") from None


def images_in(array: Path, count: int | None = None, table: Path | None = None) -> np.ndarray:
    """The pictures of an .npz, refused by its header before they are unpacked. count: how many captions there are."""
    with open_regular(array) as file:
        with zipfile.ZipFile(file) as archive:
            part = archive.getinfo("images.npy")
            packed = os.fstat(file.fileno()).st_size  # what the archive itself says of its size may be anything
            if part.file_size > most_unpacked(packed):
                raise too_much(str(array), packed)
            with archive.open(part) as stream:
                shape, dtype = _header(stream)
        _check_array(shape, dtype, array)
        if count not in (None, shape[0]):
            raise DataError(f"{array} holds {shape[0]:,} pictures but {table} has {count:,} captions: one for each")
        if math.prod(shape) > part.file_size:
            raise DataError(f"{array} is no good .npz file: it is cut short; copy or download it again")
        # The very part that was looked at: numpy would take another one that is called `images` for it.
        with zipfile.ZipFile(file) as archive, archive.open(part) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the kind of an array, told before anything of its size is unpacked."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _check_array(shape: tuple[int, ...], dtype: np.dtype[Any], array: Path) -> None:
    if dtype != np.uint8 or len(shape) != 4 or shape[3] != 3 or 0 in shape:
        raise DataError(f"{array}: images must be uint8 of shape (n, height, width, 3), found {dtype} of {shape}")
    if shape[1] * shape[2] > PIXEL_LIMIT:
        raise DataError(f"{array}: its pictures are too large ({shape[1]} x {shape[2]}), the limit is {PIXEL_LIMIT:,}")
