"""Checkpoints of a model that processes share out: torch's distributed checkpoints, in safetensors files.

    checkpoints/00001200/
      shard-00001-model-00001-of-00001.safetensors ...   what each process held, of the names of a plain checkpoint
      state.json, manifest.json                          as of every checkpoint

Every process writes and syncs its own file in the temporary folder and hashes it; when all have, the first seals the
folder with the manifest and gives it its name. So it appears whole or not at all, whoever is killed meanwhile. What is
read is asked for by rows: any number of processes goes on, each with its own part.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.errors import CheckpointError, ResourceError
from regard.storage import disk, manifest, tensors
from regard.storage.manifest import FileRecord, canonical
from regard.storage.tensors import Form
from regard.training.checkpoint import STATE, Contents, publish

if TYPE_CHECKING:
    from regard.training.parallel.joined import JoinedRanks

ALONE = "torch.distributed is disabled"  # it is: each process reads for itself
TIES = "weights"  # in state.json: what a plain file of weights says beside its numbers


def save(ranks: JoinedRanks, folder: Path, step: int, contents: Contents) -> Path:
    """Write the checkpoint of `step` below `folder`, each process its part, and return where it is."""
    from torch.distributed.checkpoint import state_dict_saver
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

    values = {**contents.weights, **contents.training}
    size, final = tensors.size_of(values), folder / f"{step:08d}"
    temporary = ranks.first(lambda: _made(folder, step, size))
    failure, own = None, {}
    try:
        writer = HuggingFaceStorageWriter(str(temporary), save_distributed=True)
        state_dict_saver.save(values, storage_writer=writer, process_group=ranks.group)
        own = _own_files(temporary, ranks.rank)
    except (CheckpointException, OSError) as error:
        failure = _reason(error)
    # A file that one process cannot read back is a failure of all of them.
    failures, records = zip(*ranks.gathered((failure, own)), strict=True)
    if reason := next((one for one in failures if one is not None), None):
        ranks.first(lambda: disk.discard(temporary))
        raise ResourceError(f"cannot save a checkpoint at {final}: {reason}")
    state = {**contents.state, TIES: dict(contents.metadata)}
    return ranks.first(lambda: _named(temporary, final, step, records, state))


def _made(folder: Path, step: int, size: int) -> Path:
    temporary = folder / f".tmp-{step}-{os.getpid()}"
    with disk.reported("save a checkpoint", folder):
        disk.require_space(folder, size)
        disk.discard(temporary)
        disk.make_folder(temporary)
    return temporary


def _own_files(folder: Path, rank: int) -> dict[str, dict[str, Any]]:
    """What this process has written, read back: size and hash of each file."""
    mine = [name for name in disk.names(folder) if name.startswith(f"shard-{rank + 1:05d}-")]
    return {name: asdict(manifest.hash_file(folder / name)) for name in mine}


def _named(
    temporary: Path, final: Path, step: int, records: Sequence[dict[str, dict[str, Any]]], state: Mapping[str, Any]
) -> Path:
    """Seal the folder and give it its name."""
    written = {name: FileRecord(record["bytes"], record["sha256"]) for part in records for name, record in part.items()}
    with disk.reported("save a checkpoint", final):
        try:
            written[STATE] = manifest.write_file(temporary / STATE, [canonical(dict(state))])
            publish(temporary, final, step, written)
        except BaseException:
            disk.discard(temporary)
            raise
    return final


def forms(path: Path) -> dict[str, Form]:
    """Names, whole shapes and number types of everything in a checkpoint, sharded or not."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    try:
        found = HuggingFaceStorageReader(str(path)).read_metadata().state_dict_metadata
    except Exception as error:  # whatever the library makes of a file that is none of its own
        raise CheckpointError(f"{path}: not a readable checkpoint: {_reason(error)}") from None
    parts: dict[str, Any] = dict(found)
    return {name: Form(tuple(one.size), tensors.DTYPES[one.properties.dtype]) for name, one in parts.items()}


def read_into(path: Path, own: Mapping[str, Tensor]) -> None:
    """Overwrite tensors in place, each with the rows of it that it holds."""
    from torch.distributed.checkpoint import state_dict_loader
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    if not own:
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=ALONE)
        state_dict_loader.load(dict(own), storage_reader=HuggingFaceStorageReader(str(path)), no_dist=True)


def _reason(error: BaseException) -> str:
    failures = getattr(error, "failures", None)
    inner = next(iter(failures.values()))[0] if failures else error
    return getattr(inner, "strerror", None) or " ".join(str(inner).split())[:200]
