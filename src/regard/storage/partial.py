"""Partial: a file that takes long to write, which is begun, interrupted and gone on with, and has its name when whole.

    answers.csv.partial         what is written so far, locked by the one who writes
    answers.csv.partial.log     what it is made of, and a line for each part that is whole

A part is written, then its line. Whoever goes on reads the file and its log together and takes the parts that are as
the log says; what a killed process left behind them is cut off.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import LockedError, ResourceError, UsageError
from regard.storage import disk, held
from regard.storage.regular import NotRegular, read_regular
from regard.storage.system import flags
from regard.storage.temporary import is_in_place

ENDING, LOG = ".partial", ".partial.log"
LARGEST_LOG = 1 << 28
CHUNK = 1 << 22


@dataclass(frozen=True)
class Part:
    """What was written by and by: so many rows and bytes in all. mark: of what the rows were made of."""

    rows: int
    bytes: int
    sha256: str
    mark: str


@dataclass
class PartialFile:
    """A file under way, held by this process alone.

    parts    those that are whole, the last one last. digest: of all that they hold.
    is_mine  whether what is in it was begun or gone on with here.
    """

    path: Path
    descriptor: int
    parts: list[Part] = field(default_factory=list)
    digest: Any = field(default_factory=hashlib.sha256)
    is_mine: bool = False

    @property
    def place(self) -> Path:
        return beside(self.path, ENDING)

    @property
    def rows(self) -> int:
        return self.parts[-1].rows if self.parts else 0

    def add(self, data: bytes, rows: int, mark: str) -> None:
        """Write a part. rows: how many there are with it."""
        with reported(self.place):
            disk.write(self.descriptor, memoryview(data))
            self.digest.update(data)
            size = (self.parts[-1].bytes if self.parts else 0) + len(data)
            self.parts.append(Part(rows, size, self.digest.hexdigest(), mark))
            disk.append(beside(self.path, LOG), _line(vars(self.parts[-1])))

    def finish(self, data: bytes, convert: Callable[[Path, Path], None] | None = None) -> None:
        """Write the end and give the file its name. convert: makes the file of this one, where it has another form."""
        with reported(self.place):
            disk.write(self.descriptor, memoryview(data))
            disk.sync(self.descriptor)
            if convert is None:
                self._close_with(lambda: disk.replace(self.place, self.path))
            else:
                other = beside(self.path, f"{ENDING}{self.path.suffix}")
                disk.discard(other)
                try:
                    convert(self.place, other)
                    disk.replace(other, self.path)
                finally:
                    disk.discard(other)
                self._close_with(lambda: disk.remove(self.place))
            disk.discard(beside(self.path, LOG))
            disk.sync_folder(self.path.parent)

    def _close_with(self, change: Callable[[], None]) -> None:
        """Change the name and give the lock back, which is then gone whatever happens."""
        descriptor, self.descriptor = self.descriptor, -1
        disk.change_and_close(descriptor, change)


@contextmanager
def partial_file(path: Path, about: Mapping[str, Any], *, resume: bool, force: bool) -> Iterator[PartialFile]:
    """The file at `path` while it is written, for this process alone.

    about   what the content depends on, in plain values: whoever goes on must have the same.
    resume  go on with what was begun, where something was. force: begin anew, and replace what is there at the end.
    """
    _refuse(path, force)
    file = _claimed(path)
    try:
        _refuse(path, force)  # who held it may have finished it meanwhile
        begun = _begun(path, file)
        if resume and begun is not None:
            _go_on(file, begun, about)
        elif begun is not None and begun.parts and not force:
            raise UsageError(
                f"{file.place} holds {begun.rows:,} rows of a call that was interrupted; go on with --resume, or begin "
                f"anew with --force"
            )
        else:
            _begin(file, about)
        yield file
    finally:
        if file.descriptor >= 0:
            _leave(file)


def beside(path: Path, ending: str) -> Path:
    """The file that goes with another."""
    return path.with_name(path.name + ending)


@contextmanager
def reported(place: Path) -> Iterator[None]:
    """A failure of the disk as one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ResourceError(
            f"{place}: cannot write: {reason}; free some space or choose another --out, and go on with --resume"
        ) from error


@dataclass(frozen=True)
class _Begun:
    """What a log says."""

    about: Any
    parts: list[Part]

    @property
    def rows(self) -> int:
        return self.parts[-1].rows if self.parts else 0


def _refuse(path: Path, force: bool) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}; make it, or choose another --out")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no regular file; without --out answers go to standard output")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} is there already; choose another --out, or replace it with --force")


def _claimed(path: Path) -> PartialFile:
    place = beside(path, ENDING)
    with reported(place):
        while True:
            if os.path.lexists(place) and not disk.is_plain_file(place):
                raise UsageError(f"{place} is no regular file; move it away")
            descriptor = os.open(place, flags("RDWR", "CREAT", "NOFOLLOW", "NONBLOCK", "NOCTTY"), 0o644)
            try:
                held.lock(descriptor)
            except BlockingIOError:
                held.close(descriptor)
                raise LockedError(
                    f"{path} is being written by another process; wait for it, or choose another --out"
                ) from None
            # Until it was locked, whoever held it may have given it its name.
            if is_in_place(descriptor, place):
                return PartialFile(path, descriptor)
            held.close(descriptor)


def _begun(path: Path, file: PartialFile) -> _Begun | None:
    """What was begun here, as far as the file is what its log says."""
    try:
        lines = read_regular(beside(path, LOG), LARGEST_LOG, links=False).split(b"\n")[:-1]
    except FileNotFoundError:
        return None
    except (NotRegular, IsADirectoryError):
        raise UsageError(f"{beside(path, LOG)} is no regular file; move it away") from None
    with suppress(ValueError, TypeError, KeyError):
        about = json.loads(lines[0])["about"]
        return _Begun(about, list(_whole(file, lines[1:])))
    return None


def _whole(file: PartialFile, lines: list[bytes]) -> Iterator[Part]:
    """The parts up to the first that the file does not hold as it was written."""
    digest, size = hashlib.sha256(), 0
    os.lseek(file.descriptor, 0, os.SEEK_SET)
    for line in lines:
        try:
            part = Part(**json.loads(line))
            wanted = part.bytes - size
            while wanted > 0 and (data := os.read(file.descriptor, min(CHUNK, wanted))):
                digest.update(data)
                wanted -= len(data)
        except (ValueError, TypeError):
            return
        if wanted or digest.hexdigest() != part.sha256:
            return
        size, file.digest = part.bytes, digest.copy()
        yield part


def _go_on(file: PartialFile, begun: _Begun, about: Mapping[str, Any]) -> None:
    plain = json.loads(json.dumps(about))
    if begun.about != plain:
        mine = begun.about if isinstance(begun.about, dict) else {}
        other = ", ".join(key for key in plain if mine.get(key) != plain[key])
        raise UsageError(
            f"{file.place} was begun with another {other}; go on as it was begun, or begin anew with --force"
        )
    size = begun.parts[-1].bytes if begun.parts else 0
    with reported(file.place):
        os.ftruncate(file.descriptor, size)
        os.lseek(file.descriptor, size, os.SEEK_SET)
        _start_log(file.path, about, begun.parts)
    file.parts, file.is_mine = begun.parts, True


def _begin(file: PartialFile, about: Mapping[str, Any]) -> None:
    with reported(file.place):
        os.ftruncate(file.descriptor, 0)
        os.lseek(file.descriptor, 0, os.SEEK_SET)
        _start_log(file.path, about, [])
    file.digest, file.is_mine = hashlib.sha256(), True


def _start_log(path: Path, about: Mapping[str, Any], parts: list[Part]) -> None:
    """The log as it is so far: a line that was cut short is gone."""
    disk.publish(beside(path, LOG), [_line({"about": about}), *(_line(vars(part)) for part in parts)])


def _leave(file: PartialFile) -> None:
    """Give back a file that is not whole; where nothing is in it, it goes."""
    if file.parts or (os.fstat(file.descriptor).st_size and not file.is_mine):
        held.close(file.descriptor)
        return
    disk.discard(beside(file.path, LOG))
    with suppress(OSError):
        disk.change_and_close(file.descriptor, lambda: disk.remove(file.place))


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode() + b"\n"
