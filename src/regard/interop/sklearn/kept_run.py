"""KeptRun: a run as the bytes of its files, to be copied, pickled and sent to other processes.

The bytes are one safetensors file that holds each file of the run folder as an array of bytes: weights as safetensors,
everything else as JSON. No module is pickled. When such bytes are read their hash is compared first, and the hash of
every file in them before it is used, so that what is damaged is told in a line; the bytes can ask for no more memory
than they have.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from regard.errors import CheckpointError
from regard.run.run import Run, load_folder
from regard.storage import manifest
from regard.storage.disk import reported
from regard.storage.temporary import temporary_folder
from regard.training import run_folder

FORMAT = 1
TEMPORARY = "regard-sklearn-"
IN_MEMORY = Path("(in memory)")


class KeptRun:
    """packed: the files of a run folder. device: what it is used on. run: the same, where it is in memory already."""

    def __init__(self, packed: bytes, device: str, run: Run | None = None) -> None:
        self.packed, self.device = packed, device
        self._run = run

    @classmethod
    def of_folder(cls, folder: Path, device: str, run: Run | None = None) -> KeptRun:
        """All files of a run folder but the checkpoints of its training, each checked."""
        run_folder.require_run(folder)
        names = [manifest.NAME, *manifest.verify(folder, extras=False).files]
        return cls(save({name: np.fromfile(folder / name, np.uint8) for name in names}), device, run)

    @property
    def run(self) -> Run:
        """The run, read from its bytes when it is first asked for."""
        if self._run is None:
            with temporary_folder(None, TEMPORARY) as folder:
                self.write(folder)
                try:
                    self._run = without_folder(load_folder(folder, device=self.device))
                except CheckpointError as error:
                    raise _damaged(str(error).replace(f"{folder}{os.sep}", "")) from None
        return self._run

    def write(self, folder: Path) -> None:
        """The run as a folder, which the commands of regard take."""
        try:
            files = load(self.packed)
        except (SafetensorError, ValueError, KeyError) as error:
            raise _damaged(str(error)) from None
        for name, content in files.items():
            if not manifest.SAFE_NAME.fullmatch(name) or content.dtype != np.uint8:
                raise _damaged(f"{name[:40]!r} is no file of a run")
        with reported("write", folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                content.tofile(folder / name)

    def __getstate__(self) -> dict[str, Any]:
        return {"format": FORMAT, "device": self.device, "sha256": _hash(self.packed), "safetensors": self.packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise _damaged(f"it is not of format {FORMAT}, which this regard reads")
        packed, told = state.get("safetensors"), state.get("sha256")
        if not isinstance(packed, bytes) or not isinstance(told, str):
            raise _damaged("it holds no bytes of a run")
        if not hmac.compare_digest(_hash(packed), told):
            raise _damaged(f"its SHA-256 is {_hash(packed)[:16]}..., and it says {told[:16]}...")
        self.__init__(packed, str(state.get("device", "auto")))


def without_folder(run: Run) -> Run:
    """A run whose folder goes, and is therefore not named by what it says."""
    run.path = IN_MEMORY
    return run


def _hash(packed: bytes) -> str:
    return hashlib.sha256(packed).hexdigest()


def _damaged(why: str) -> CheckpointError:
    return CheckpointError(f"the saved state of a fitted estimator is damaged or from elsewhere: {why}; fit it again")
