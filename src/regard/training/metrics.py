"""metrics.jsonl: one JSON object a line, each line written whole. A sink that fails warns once; training goes on."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from regard.errors import UsageError
from regard.training import disk


class Metrics:
    """Where the numbers of a run go: a file of lines and, when asked for, TensorBoard."""

    def __init__(self, path: Path, warn: Callable[[str], None], *, tensorboard: bool = False) -> None:
        self.path = path
        self.warn = warn
        self.board = _board(path.parent / "tensorboard") if tensorboard else None
        self.has_warned = False

    def write(self, record: dict[str, Any]) -> None:
        """Append a record; `step` is its abscissa."""
        try:
            disk.append(self.path, json.dumps(record).encode() + b"\n")
            if self.board is not None:
                for name, value in record.items():
                    if isinstance(value, float):
                        self.board.add_scalar(name, value, record["step"])
        # A broken sink must not end a run, whatever it raises.
        except Exception as error:
            if not self.has_warned:
                self.warn(f"{self.path}: metrics are not being written: {error}; training goes on")
            self.has_warned = True

    def close(self) -> None:
        if self.board is not None:
            self.board.close()


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a file, in order; a last line torn by a kill is left out."""
    if not path.exists():
        return []
    return [record for record in map(_record, path.read_bytes().split(b"\n")) if record is not None]


def up_to(path: Path, step: int) -> Iterable[bytes]:
    """The lines of records up to `step`: what a run that goes on from there keeps."""
    kept = (record for record in read(path) if record.get("step", 0) <= step)
    return [b"".join(json.dumps(record).encode() + b"\n" for record in kept)]


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _board(folder: Path) -> Any:
    try:
        return importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(folder))
    except ImportError:
        raise UsageError("train.tensorboard: TensorBoard is not installed; pip install 'regard[track]'") from None
