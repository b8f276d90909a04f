"""Growing arrays: files of a folder that is filled by and by, may be left at any moment and gone on with.

    .begun-NAME/           what is written so far, one file an array
    .begun-NAME/begun.log  what it is made of, and lines that say how far every array was whole, with its hash

What a killed process left behind the last line is cut off by whoever goes on; where a file is not as that line says,
everything is begun anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import ResourceError
from regard.storage import disk, held, manifest
from regard.storage.arrays import mapped
from regard.storage.regular import open_regular, read_regular
from regard.storage.system import flags
from regard.storage.temporary import is_in_place

PREFIX, LOG, LOCK = ".begun-", "begun.log", ".lock"
LARGEST_LOG = 1 << 26
CHUNK = 1 << 23
WAIT = 0.2  # seconds between two looks at a folder that another process fills
EVERY = 2.0  # seconds between two lines of the log


class GrowingFile:
    """An array that grows at the end of a file, hashed on the way."""

    def __init__(self, path: Path, dtype: np.dtype, size: int = 0, digest: Any = None) -> None:
        self.path, self.dtype, self.size = path, dtype, size
        self._digest = hashlib.sha256() if digest is None else digest
        self._descriptor = os.open(path, flags("WRONLY", "CREAT", "APPEND", "NOFOLLOW"), 0o644)
        # One thread hashes while the other writes: both let go of the interpreter's lock.
        self._hasher = ThreadPoolExecutor(1)
        self._hashed: Future[None] | None = None

    def append(self, values: np.ndarray) -> None:
        """Add values, brought to the type of the array."""
        data = np.ascontiguousarray(values, self.dtype).view(np.uint8).data
        if not len(data):
            return
        self._settle()
        self._hashed = self._hasher.submit(self._digest.update, data)
        disk.write(self._descriptor, data)
        self.size += len(values)

    def array(self) -> np.ndarray:
        with open(self.path, "rb") as file:
            return mapped(file, self.dtype)

    def record(self) -> manifest.FileRecord:
        """What the file holds so far."""
        self._settle()
        return manifest.FileRecord(self.size * self.dtype.itemsize, self._digest.hexdigest())

    def close(self, sync: bool = False) -> None:
        self._hasher.shutdown()
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                if sync:
                    disk.sync(descriptor)
            finally:
                disk.close(descriptor)

    def _settle(self) -> None:
        if self._hashed is not None:
            self._hashed.result()


class BegunFolder:
    """A folder under way, held by this process alone.

    done   what the last line of the log says beside the arrays; None where nothing was begun before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, GrowingFile] = {}
        self._line = _last_line(path)
        if self._line is None:
            disk.discard(path)
            path.mkdir(parents=True)
        self.done = None if self._line is None else self._line["done"]
        self._told = time.monotonic()

    def forget(self) -> None:
        """Begin anew."""
        self._line = self.done = None

    def open_arrays(self, dtypes: Mapping[str, np.dtype]) -> None:
        """Let arrays of these types grow: those that were begun, as far as all are as the log says, else new ones."""
        self.files = {} if self._line is None else _gone_on(self.path, self._line["arrays"], dtypes)
        if not self.files:
            self.done = None
            for name in (LOG, *dtypes):
                disk.discard(self.path / name)
            self.files = {name: GrowingFile(self.path / name, dtype) for name, dtype in dtypes.items()}

    def mark(self, done: Mapping[str, Any]) -> None:
        """Say how far things are; where they come to be left, they go on from here."""
        records = {name: [file.size, file.record().sha256] for name, file in self.files.items()}
        disk.append(self.path / LOG, json.dumps({"arrays": records, "done": done}).encode() + b"\n")
        self._told, self.done = time.monotonic(), done

    @property
    def is_due(self) -> bool:
        """Whether it is time for another mark."""
        return time.monotonic() - self._told > EVERY

    def finish(self, folder: Path, arrays: Collection[str], texts: Mapping[str, bytes]) -> None:
        """Everything is there: the folder gets its manifest and its name. Arrays that nobody names are left out."""
        written = {}
        for name, file in self.files.items():
            file.close(sync=True)
            if name in arrays:
                written[name] = file.record()
            else:
                disk.discard(self.path / name)
        for name, text in texts.items():
            disk.discard(self.path / name)
            written[name] = manifest.write_file(self.path / name, [text])
        disk.discard(self.path / manifest.NAME)
        disk.discard(self.path / LOG)
        manifest.seal(self.path, written)
        disk.move_folder(self.path, folder)

    def close(self) -> None:
        for file in self.files.values():
            file.close()


@contextmanager
def begun_folder(folder: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[BegunFolder | None]:
    """What was begun for `folder`, to go on with; None when another process has finished it meanwhile.

    What fails or is interrupted stays for the next time. waiting: is called while another process is at it.
    """
    path = folder.parent / f"{PREFIX}{folder.name}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.with_name(path.name + LOCK), folder, waiting) as is_mine:
            if not is_mine:
                yield None
                return
            begun = BegunFolder(path)
            try:
                yield begun
            finally:
                begun.close()
                if begun.done is None:  # nothing in it is worth going on with
                    disk.discard(path)
    except OSError as error:
        raise ResourceError(
            f"cannot write {folder}: {error.strerror or error}; free space or choose another data.cache, and what was "
            f"done so far is gone on with"
        ) from None


@contextmanager
def _alone(lock: Path, folder: Path, waiting: Callable[[], None]) -> Iterator[bool]:
    """Hold a lock, waiting for it; False when the folder is there by then."""
    while (descriptor := disk.try_lock(lock)) is None or not is_in_place(descriptor, lock):
        if descriptor is not None:  # of a file that whoever held it has removed
            held.close(descriptor)
        elif folder.exists():
            yield False
            return
        else:
            waiting()
            time.sleep(WAIT)
    try:
        yield not folder.exists()
    finally:
        with suppress(OSError):
            disk.change_and_close(descriptor, lambda: disk.remove(lock))


def _last_line(path: Path) -> dict[str, Any] | None:
    """The last whole line of a log; None without one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        line = json.loads(read_regular(path / LOG, LARGEST_LOG, links=False).split(b"\n")[-2:][0])
        return {"arrays": dict(line["arrays"]), "done": dict(line["done"])}
    return None


def _gone_on(path: Path, records: Mapping[str, Any], dtypes: Mapping[str, np.dtype]) -> dict[str, GrowingFile]:
    """The files cut to what the log says of them; none where they are not so."""
    files: dict[str, GrowingFile] = {}
    with suppress(OSError, ValueError, TypeError):
        if records.keys() != dtypes.keys():
            return {}
        digests = {name: _hashed(path / name, int(records[name][0]) * dtypes[name].itemsize) for name in dtypes}
        if any(digests[name].hexdigest() != records[name][1] for name in dtypes):
            return {}
        for name, dtype in dtypes.items():
            size = int(records[name][0])
            os.truncate(path / name, size * dtype.itemsize)
            files[name] = GrowingFile(path / name, dtype, size, digests[name])
        return files
    return {}


def _hashed(path: Path, size: int) -> Any:
    """A digest of the first bytes of a file."""
    digest, buffer = hashlib.sha256(), bytearray(CHUNK)
    with open_regular(path, links=False) as file:
        while size > 0 and (count := file.readinto(memoryview(buffer)[: min(CHUNK, size)])):
            digest.update(memoryview(buffer)[:count])
            size -= count
    if size:
        raise ValueError(f"{path} is shorter than its log says")
    return digest
