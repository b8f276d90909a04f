"""Exported folders and files: written beside their place, whole or not at all; what is there is replaced if asked for.

An exported folder has an `export.json`, by which it is known: no other folder is ever replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.core.version import __version__
from regard.errors import RegardError, ResourceError, UsageError
from regard.run.paths import require_name
from regard.storage import disk, manifest
from regard.storage.regular import open_regular
from regard.storage.temporary import temporary_folder

MARK, FORMAT = "export.json", "regard-export"
UNFINISHED = ".exporting-"


@contextmanager
def told_of(path: Path) -> Iterator[None]:
    """What is refused, with the run that it is said of."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def require_free(target: Path, force: bool) -> None:
    """Refuse a place that cannot be taken, before any work is done."""
    require_name(target)
    if os.path.lexists(target.parent) and not target.parent.is_dir():
        raise UsageError(f"{target}: {target.parent} is no folder")
    if not os.path.lexists(target):
        return
    if not force:
        raise UsageError(f"{target}: is there already; name another place, or replace it with --force")
    if not disk.is_plain_file(target) and not _is_export(target):
        raise UsageError(f"{target}: is no folder that was exported, and is not replaced; name another place")


def _is_export(folder: Path) -> bool:
    try:
        content = manifest.read_json(folder / MARK)
    except (RegardError, OSError):
        return False
    return disk.is_plain_folder(folder) and isinstance(content, dict) and content.get("format") == FORMAT


@contextmanager
def new_folder(target: Path, force: bool) -> Iterator[Path]:
    """A folder to write to, which has its name when the block has ended well."""
    require_free(target, force)
    with _reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(target.parent, UNFINISHED) as place:
            made = place / target.name
            disk.make_folder(made)
            yield made
            _sync(made)
            if os.path.lexists(target):
                os.replace(target, place / ".old")
            disk.move_folder(made, target)


@contextmanager
def _reported(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ResourceError(
            f"{target}: cannot write: {reason}; free some space or name another place (what was there is as it was)"
        ) from error


def _sync(folder: Path) -> None:
    """Everything in a folder, whoever wrote it, on the disk."""
    for name in disk.names(folder):
        path = folder / name
        if path.is_dir():
            _sync(path)
        else:
            with open_regular(path) as file:
                disk.sync(file.fileno())
    disk.sync_folder(folder)


def write_files(folder: Path, files: Mapping[str, Iterable[Any]]) -> None:
    """Files by their names, of which some lie in folders."""
    for name, chunks in files.items():
        path = folder / name
        if not path.parent.exists():
            disk.make_folder(path.parent)
        manifest.write_file(path, chunks)


def mark(to: str, facts: Mapping[str, Any]) -> bytes:
    """The content of export.json."""
    told = {"format": FORMAT, "version": 1, "regard": __version__, "to": to, **facts}
    return (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode()


def write_file(target: Path, force: bool, chunks: Iterable[Any]) -> None:
    """One file under a name that a person gave."""
    _require_file(target, force)
    with _reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    disk.write_for_person(target, chunks)


@contextmanager
def new_file(target: Path, force: bool, chunks: Iterable[Any]) -> Iterator[Path]:
    """A file that is written, and has its name when the block, which looks at it, has ended well."""
    _require_file(target, force)
    with _reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(target.parent, UNFINISHED) as place:
            made = place / target.name
            manifest.write_file(made, chunks)
            yield made
            disk.replace(made, target)
            disk.sync_folder(target.parent)


def _require_file(target: Path, force: bool) -> None:
    require_free(target, force)
    if target.is_dir():
        raise UsageError(f"{target}: is a folder, and a file is to have that name; name another place")


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
