"""Manifest: the size and SHA-256 of every file of a folder, and of the manifest itself.

No checkpoint format in use notices a flipped bit, so every file is hashed while it is written and again before it is
read. The manifest's text is canonical JSON with its own digest inside: a flip in it is noticed too.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import LONGEST_TOLD, CheckpointError
from regard.storage import disk
from regard.storage.format import FIRST, FORMAT_VERSION, require_readable
from regard.storage.regular import NotRegular, TooLarge, open_regular, read_regular

NAME = "manifest.json"
CHUNK, SMALL = 1 << 23, 1 << 20
MAPPED = 1 << 26
LARGEST_JSON = 1 << 24
FACTS = (str, int, float)
SAFE_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class FileRecord:
    """What a file must be. `previous` is what it may also be while a replacement is under way (None: nothing yet)."""

    bytes: int
    sha256: str
    replacing: bool = False
    previous: FileRecord | None = None

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"bytes": self.bytes, "sha256": self.sha256}
        if self.replacing:
            plain["previous"] = self.previous.to_dict() if self.previous else None
        return plain


@dataclass(frozen=True)
class Manifest:
    """The files of a folder, and a few facts such as the step."""

    files: Mapping[str, FileRecord] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        content = {
            "format_version": FORMAT_VERSION,
            "facts": dict(self.facts),
            "files": {name: record.to_dict() for name, record in self.files.items()},
        }
        return canonical(content | {"digest": _digest(content)})


def canonical(content: Any) -> bytes:
    """The one text of a JSON value: sorted keys, one space of indent, a last newline."""
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def write_file(path: Path, chunks: Iterable[Any]) -> FileRecord:
    """Write and sync a new file, hashing beside the writing; no second reading is needed to know its hash."""
    digest, total = hashlib.sha256(), 0
    descriptor = disk.create(path)
    try:
        # One thread hashes while this one writes: both let go of the interpreter's lock for large pieces.
        with ThreadPoolExecutor(1) as hasher:
            for piece in _pieces(chunks):
                hashed = hasher.submit(digest.update, piece)
                disk.write(descriptor, piece)
                total += len(piece)
                hashed.result()  # then a piece of a mapped array can leave memory
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)
    return FileRecord(total, digest.hexdigest())


def seal(folder: Path, files: Mapping[str, FileRecord], facts: Mapping[str, Any] | None = None) -> None:
    """Write the manifest of a folder, after everything else, and make the names in it durable."""
    write_file(folder / NAME, [Manifest(files, facts or {}).to_bytes()])
    disk.sync_folder(folder)


def read(folder: Path) -> Manifest:
    """The manifest of a folder, refused when it is damaged, foreign or from a newer regard."""
    path = folder / NAME
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("format_version"), int):
        raise CheckpointError(f"{path}: not a manifest of regard")
    version = require_readable(content["format_version"], path)
    claimed = content.pop("digest", None)
    try:
        actual = _digest(content)
        if claimed != actual or version < FIRST:
            raise CheckpointError(f"{path}: damaged, its digest is {_short(actual)} and it says {_short(claimed)}")
        if read_regular(path, LARGEST_JSON, links=False) != canonical(content | {"digest": claimed}):
            raise CheckpointError(f"{path}: damaged, its text is not canonical")
        files = {_safe(name, path): _record(plain) for name, plain in content["files"].items()}
        return Manifest(files, _facts(content["facts"]))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a manifest of regard: {repr(error)[:LONGEST_TOLD]}") from None


def read_json(path: Path, most: int = LARGEST_JSON, *, constants: bool = False) -> Any:
    """A JSON value of modest size from a file that is no link. constants: whether NaN and infinities may occur."""
    try:
        data = read_regular(path, most, links=False)
        return json.loads(data, parse_constant=None if constants else _refuse_constant)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: is missing") from None
    except (NotRegular, TooLarge, IsADirectoryError) as error:
        raise CheckpointError(f"{path}: {_state(error)}") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: damaged, not JSON: {error}") from None


def verify(folder: Path, names: Iterable[str] | None = None, *, extras: bool = True) -> Manifest:
    """Check the files of a folder against its manifest: all of them, or those named.

    extras: whether files that the manifest does not list are an error.
    """
    found = read(folder)
    wanted = list(found.files if names is None else names)
    for name in wanted:
        if name not in found.files:
            raise CheckpointError(f"{folder / name}: not in {folder / NAME}")
    unknown = set(disk.names(folder)) - set(found.files) - {NAME}
    if extras and unknown:
        raise CheckpointError(f"{folder / min(unknown)}: not in {folder / NAME}; remove it")
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda name: verify_file(folder / name, found.files[name]), wanted):
            pass
    return found


def hash_file(path: Path) -> FileRecord:
    """Size and SHA-256 of a file as it is on disk."""
    digest, total, buffer = hashlib.sha256(), 0, bytearray(CHUNK)
    with open_regular(path, links=False) as file:
        if os.fstat(file.fileno()).st_size >= MAPPED:
            # In one call, which goes on while another thread holds the interpreter.
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                digest.update(whole)
                return FileRecord(len(whole), digest.hexdigest())
        while count := file.readinto(buffer):
            digest.update(memoryview(buffer)[:count])
            total += count
    return FileRecord(total, digest.hexdigest())


def _pieces(chunks: Iterable[Any]) -> Iterator[memoryview]:
    """The same bytes in pieces neither tiny, which cost a call each, nor so large that the hash waits for the disk."""
    small = bytearray()
    for chunk in chunks:
        view = memoryview(chunk).cast("B")
        if len(view) < SMALL:
            small += view
        if small and (len(view) >= SMALL or len(small) >= SMALL):
            yield memoryview(bytes(small))
            small.clear()
        if len(view) >= SMALL:
            yield from (view[start : start + CHUNK] for start in range(0, len(view), CHUNK))
    if small:
        yield memoryview(bytes(small))


def verify_file(path: Path, record: FileRecord) -> None:
    """Refuse a file that is not what its record says."""
    if not disk.is_plain_file(path):
        state = "is a link or no file" if path.is_symlink() or path.exists() else "is missing"
        raise CheckpointError(f"{path}: {state}, the manifest expects {record.bytes} bytes {_short(record.sha256)}")
    accepted = [record, *([record.previous] if record.previous else [])]
    try:
        size = path.stat().st_size
        if size not in [one.bytes for one in accepted]:
            raise CheckpointError(
                f"{path}: {size} bytes, the manifest expects {record.bytes}; truncated or overwritten"
            )
        actual = hash_file(path)
    except OSError as error:
        if error.errno in disk.OF_THE_PROCESS:
            raise
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    if (actual.bytes, actual.sha256) not in [(one.bytes, one.sha256) for one in accepted]:
        raise CheckpointError(
            f"{path}: SHA-256 is {_short(actual.sha256)}, the manifest expects {_short(record.sha256)}"
        )


def _record(plain: dict[str, Any]) -> FileRecord:
    replacing = "previous" in plain
    previous = plain.get("previous")
    if not isinstance(plain["bytes"], int) or not isinstance(plain["sha256"], str):
        raise TypeError("bytes must be a count and sha256 a text")
    return FileRecord(plain["bytes"], plain["sha256"], replacing, _record(previous) if previous else None)


def _state(error: OSError) -> str:
    return "is a folder, not a file" if isinstance(error, IsADirectoryError) else str(error.strerror)


def _facts(plain: Any) -> dict[str, Any]:
    """What is said of a folder as a whole: words and numbers."""
    if not isinstance(plain, dict) or not all(isinstance(one, FACTS) or one is None for one in plain.values()):
        raise TypeError("facts must be words and numbers")
    return plain


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")


def _safe(name: str, path: Path) -> str:
    if not SAFE_NAME.fullmatch(name) or name in (".", "..", NAME):
        raise CheckpointError(f"{path}: names the file {name!r}; names are letters, digits, '.', '_' and '-'")
    return name


def _digest(content: Any) -> str:
    return hashlib.sha256(canonical(content)).hexdigest()


def _short(digest: Any) -> str:
    return f"{str(digest)[:16]}..."
