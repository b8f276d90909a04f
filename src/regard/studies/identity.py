"""What a finished training is known by: its settings, the data it read, and what else its numbers come from.

The machine under an experiment: what its numbers may depend on, and the memory it had to give.
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.device import device_named
from regard.core.version import __version__
from regard.data.shard import TokenShard
from regard.data.tokenizer import Tokenizer
from regard.run.readers import reader_of
from regard.run.settings import Settings
from regard.storage import manifest
from regard.storage.arrays import sha256
from regard.studies.ledger import LATER
from regard.tasks import saved_name, task_named
from regard.tasks.dataset import Dataset
from regard.tasks.processor import PROCESSOR, TOKENIZER
from regard.training.run_folder import weights_hash

TRACK = "train.track"  # who is told of a training changes nothing of it


def fingerprint(data: Dataset[Any]) -> str:
    """SHA-256 of all that is read of the data: tokenizer, training, validation and test."""
    digest = hashlib.sha256(data.hash.encode())
    for part in data.judged():
        for chunk in _content(part, {}):
            digest.update(chunk)
    return digest.hexdigest()


def content_hash(value: Any) -> str:
    """SHA-256 of examples, wherever they were read from."""
    digest = hashlib.sha256()
    for chunk in _content(value, {}):
        digest.update(chunk)
    return digest.hexdigest()


def model_hash(path: Path) -> str:
    """SHA-256 of a model: of a run its weights and what it reads by, of another format all files of it."""
    if reader_of(path) is None:
        files = {"weights": weights_hash(path)}
        files |= {name: one.sha256 for name, one in manifest.read(path).files.items() if name in (TOKENIZER, PROCESSOR)}
    else:
        below = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        files = {file.relative_to(path).as_posix(): manifest.hash_file(file).sha256 for file in below}
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def mark(settings: Settings, data: str) -> str:
    """A name for one training: the same only where the same numbers would come out. data: the fingerprint of it."""
    told = {
        "settings": {key: value for key, value in _values(settings).items() if key != TRACK},
        "data": data,
        "start": _start(settings["train.start"]),
        "device": device_named(str(settings["train.device"])).type,
        "format": manifest.FORMAT_VERSION,
        "regard": __version__,
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _values(settings: Settings) -> dict[str, Any]:
    """All settings but those that came later and ask for nothing new: trainings from before them have the same name."""
    meant = task_named(saved_name({"data": settings.section("data")})).of_labels
    as_ever = {key for key, then in LATER.items() if settings[key] == then or key.partition(".")[2] not in meant}
    return {key: part.value for key, part in settings.table.items() if key not in as_ever}


def _start(path: str | None) -> str | None:
    """The weights that a fine-tuning begins with, by their hash."""
    return None if path is None else weights_hash(Path(path).expanduser())


def _content(value: Any, seen: dict[int, bytes]) -> Iterator[bytes]:
    """The bytes of an example and of what it holds; where it was read from does not count."""
    if isinstance(value, np.ndarray):
        if id(value) not in seen:
            told = f"{value.dtype.str} {value.shape}".encode()
            seen[id(value)] = sha256(np.atleast_1d(value), told).digest()
        yield seen[id(value)]
    elif isinstance(value, TokenShard):
        yield value.hash.encode()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        for field in dataclasses.fields(value):
            if field.compare:
                yield from _content(getattr(value, field.name), seen)
    elif isinstance(value, Mapping):
        yield from _content(list(value.items()), seen)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        yield f"{len(value)} ".encode()
        for part in value:
            yield from _content(part, seen)
    elif isinstance(value, Tokenizer):
        yield value.hash.encode()
    else:
        # An object that nothing is known of has no value to tell but its kind: its place in memory is none.
        plain = isinstance(value, (str, bytes, int, float, np.generic, Path, type(None)))
        yield f"{value!r} ".encode() if plain else type(value).__name__.encode()


def versions() -> dict[str, str]:
    """What the numbers may depend on."""
    import torch

    from regard.core.version import __version__

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    return {
        "regard": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": name,
        "threads": str(torch.get_num_threads()),
    }


class Peak:
    """The most memory that this process had since `start`, in bytes; None where the system does not tell."""

    def __init__(self, device: str) -> None:
        self.on_gpu = device.startswith("cuda")

    def start(self) -> None:
        """Forget what was before."""
        gc.collect()
        if self.on_gpu:
            import torch

            torch.cuda.reset_peak_memory_stats()
            return
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        except OSError:
            return

    def read(self) -> int | None:
        if self.on_gpu:
            import torch

            return torch.cuda.max_memory_allocated()
        try:
            found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
        except OSError:
            return None
        return int(found[1]) * 1024 if found else None
