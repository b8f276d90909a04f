"""Checkpoints: everything a run needs to go on as if nothing had happened, one folder a step.

    checkpoints/00001200/
      model.safetensors      parameters and buffers, a tied one once
      optimiser.safetensors  every other tensor the next step reads: moments by parameter name, the moving average,
                             the carried recurrent state, the random generators
      state.json             counters, clock, best score, evaluation plan
      manifest.json          size and SHA-256 of each

A checkpoint appears under its name whole or not at all: everything is written and synced in a temporary folder, the
read back and compared, the manifest last, then the folder is renamed and its parent synced. No file says which is the
latest: the newest that verifies is. Older ones go only after that.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.errors import CheckpointError
from regard.storage import disk, manifest, tensors
from regard.storage.manifest import FileRecord, Manifest, canonical

MODEL = "model.safetensors"
OPTIMISER = "optimiser.safetensors"
STATE = "state.json"
SHARD = "shard-"  # how the files of a checkpoint begin that many processes wrote (training/sharded_checkpoint.py)


@dataclass(frozen=True)
class Contents:
    """What a checkpoint holds."""

    weights: Mapping[str, Tensor]
    metadata: Mapping[str, str]
    training: Mapping[str, Tensor]
    state: Mapping[str, Any]


def save(folder: Path, step: int, contents: Contents) -> Path:
    """Write the checkpoint of `step` below `folder`, read it back, give it its name, and return where it is."""
    final = folder / f"{step:08d}"
    temporary = folder / f".tmp-{step}-{os.getpid()}"
    with disk.reported("save a checkpoint", final):
        disk.require_space(folder, tensors.size_of(contents.weights) + tensors.size_of(contents.training))
        disk.discard(temporary)
        try:
            disk.make_folder(temporary)
            written = _write(temporary, contents)
            publish(temporary, final, step, written)
        except BaseException:
            disk.discard(temporary)
            raise
    return final


def publish(temporary: Path, final: Path, step: int, written: Mapping[str, FileRecord]) -> None:
    """Seal a folder in which everything was written and synced, and give it its name."""
    manifest.seal(temporary, written, {"step": step})
    if os.path.lexists(final):
        _set_aside(final)
    disk.move_folder(temporary, final)


def _write(folder: Path, contents: Contents) -> dict[str, FileRecord]:
    """Write the files, and read each back while the next is written. The largest comes first: its reading is hidden."""
    files = {
        OPTIMISER: tensors.chunks(contents.training),
        MODEL: tensors.chunks(contents.weights, contents.metadata),
        STATE: [canonical(dict(contents.state))],
    }
    written, readings = {}, []
    with ThreadPoolExecutor(1) as reader:
        for name, chunks in files.items():
            written[name] = manifest.write_file(folder / name, chunks)
            readings.append(reader.submit(manifest.verify_file, folder / name, written[name]))
        for reading in readings:
            reading.result()
    return written


def verify(path: Path) -> Manifest:
    """Check every file of a checkpoint; a damaged, missing, extra or foreign one is named."""
    if not disk.is_plain_folder(path):
        raise CheckpointError(f"{path}: is a link or no folder" if os.path.lexists(path) else f"{path}: is missing")
    found = manifest.verify(path)
    needed = (STATE,) if any(name.startswith(SHARD) for name in found.files) else (MODEL, OPTIMISER, STATE)
    for name in needed:
        if name not in found.files:
            raise CheckpointError(f"{path / name}: not in the manifest; the checkpoint is not one of regard")
    if found.facts.get("step") != int(path.name):
        raise CheckpointError(f"{path}: holds step {found.facts.get('step')}, which is not its name")
    return found


def steps(folder: Path) -> list[int]:
    """Steps that have a checkpoint, whole or not, in order. Their age is never asked."""
    return sorted(int(name) for name in disk.names(folder) if name.isdigit())


def path_of(folder: Path, step: int) -> Path:
    return folder / f"{step:08d}"


def newest(folder: Path, *, fall_back: bool) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that verifies, and what was wrong with the newer ones.

    fall_back: go on to older ones when the newest is damaged; without it a damaged newest one is an error.
    """
    problems = []
    for step in reversed(steps(folder)):
        try:
            verify(path_of(folder, step))
            return path_of(folder, step), problems
        except CheckpointError as error:
            if not fall_back:
                raise CheckpointError(f"{error}; --resume auto goes back to the newest undamaged checkpoint") from None
            problems.append(str(error))
    if problems:
        raise CheckpointError(f"{folder}: no checkpoint verifies: {problems[0]}")
    return None, problems


def set_aside_after(folder: Path, step: int) -> None:
    """Move damaged checkpoints newer than `step` out of the way, for somebody to look at; nothing is deleted."""
    with disk.reported("set a damaged checkpoint aside", folder):
        for newer in [found for found in steps(folder) if found > step]:
            _set_aside(path_of(folder, newer))


def prune(folder: Path, keep: int, protected: Collection[int]) -> None:
    """Keep the last `keep` checkpoints and the protected steps. Call it only when the newest one was verified."""
    with disk.reported("remove old checkpoints", folder):
        for step in steps(folder)[:-keep]:
            if step not in protected:
                trash = folder / f".trash-{step}-{os.getpid()}"
                disk.rename(path_of(folder, step), trash)
                disk.remove_tree(trash)


def is_sharded(path: Path) -> bool:
    """Whether a checkpoint is in parts, of processes that shared the parameters out."""
    return not (path / MODEL).exists()


def read_state(path: Path) -> dict[str, Any]:
    """The counters of a verified checkpoint."""
    state = manifest.read_json(path / STATE)
    if not isinstance(state, dict):
        raise CheckpointError(f"{path / STATE}: expected an object")
    return state


def _set_aside(path: Path) -> None:
    number = 0
    while os.path.lexists(aside := path.with_name(f"damaged-{path.name}-{number}")):
        number += 1
    disk.rename(path, aside)
