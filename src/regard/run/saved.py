"""A run folder copied to another place: whole, checked and durable, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from regard.errors import CheckpointError, UsageError
from regard.run.paths import require_name
from regard.storage import disk, manifest
from regard.storage.lock import LOCK, refuse_in_use
from regard.storage.regular import open_regular
from regard.storage.temporary import temporary_folder
from regard.training import run_folder

UNFINISHED = ".saving-"
CHUNK = 1 << 22  # bytes


def save_run(source: Path, target: Path) -> None:
    """Copy the run in `source`, its checkpoints and logs with it, to `target`, which must not be there yet.

    It is written beside its place, every file is checked against its manifest, and one rename gives it its name.
    """
    run_folder.require_run(source)
    require_name(target)
    if os.path.lexists(target):
        raise UsageError(f"{target}: is there already; save the run under another name")
    if target.resolve().is_relative_to(source.resolve()):
        raise UsageError(f"{target}: lies within the run itself; save it elsewhere")
    run_folder.refuse_file(target.parent)
    refuse_in_use(source)
    with disk.reported("save the run", target):
        files = list(_files(source))
        target.parent.mkdir(parents=True, exist_ok=True)
        disk.require_space(target.parent, sum(file.stat().st_size for file in files))
        with temporary_folder(target.parent, UNFINISHED) as folder:
            copy = folder / target.name
            disk.make_folder(copy)
            _copy(source, copy, files)
            _verify(copy, source)
            disk.move_folder(copy, target)


def _files(folder: Path) -> Iterator[Path]:
    """Every file of a run and of what lies in it; links and what a writer has not finished are no part of it."""
    for name in disk.names(folder):
        path = folder / name
        if name == LOCK or name.startswith(run_folder.TEMPORARY):
            continue
        if disk.is_plain_folder(path):
            yield from _files(path)
        elif disk.is_plain_file(path):
            yield path


def _copy(source: Path, copy: Path, files: list[Path]) -> None:
    folders = {copy}
    for file in files:
        place = copy / file.relative_to(source)
        for folder in reversed([place.parent, *place.parent.parents]):
            if folder.is_relative_to(copy) and folder not in folders:
                disk.make_folder(folder)
                folders.add(folder)
        manifest.write_file(place, _chunks(file))
    for folder in folders:
        disk.sync_folder(folder)


def _chunks(file: Path) -> Iterator[bytes]:
    with open_regular(file, links=False) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def _verify(copy: Path, source: Path) -> None:
    for name, told in run_folder.verify_run(copy).items():
        if told != "ok":
            raise CheckpointError(f"{source / name}: is not what the manifest says; nothing was saved ({told})")
