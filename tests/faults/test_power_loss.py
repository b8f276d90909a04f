"""Power loss at every moment of a save: what was not synced is gone, and names may or may not have reached the disk."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from regard.errors import CheckpointError
from regard.storage import disk, manifest
from regard.training import checkpoint
from regard.training.checkpoint import Contents
from regard.training.run_folder import claim


@dataclass
class File:
    cached: bytes = b""
    durable: bytes = b""


@dataclass
class Folder:
    cached: dict[str, File | Folder] = field(default_factory=dict)
    durable: dict[str, File | Folder] = field(default_factory=dict)


class Disk:
    """A disk that remembers what was synced. Each operation is done for real and noted here."""

    def __init__(self, monkeypatch, root: Path) -> None:
        self.root_path, self.root = root, Folder()
        self.open: dict[int, File] = {}
        self.crashes: list[tuple[Folder, bool]] = []
        self.real = {name: getattr(disk, name) for name in disk.OPERATIONS}
        for name in disk.OPERATIONS:
            if hasattr(self, name):
                monkeypatch.setattr(disk, name, self._noted(name))

    def _noted(self, name: str):
        def wrapped(*arguments):
            result = self.real[name](*arguments)
            getattr(self, name)(*arguments, result)
            for names_survive in (False, True):
                self.crashes.append((_after_crash(self.root, names_survive), names_survive))
            return result

        return wrapped

    def _folder(self, path: Path) -> Folder:
        found = self.root
        for part in path.relative_to(self.root_path).parts:
            found = found.cached[part]
            assert isinstance(found, Folder)
        return found

    def make_folder(self, path, _):
        self._folder(path.parent).cached[path.name] = Folder()

    def create(self, path, descriptor):
        self.open[descriptor] = self._folder(path.parent).cached[path.name] = File()

    def write(self, descriptor, chunk, _):
        self.open[descriptor].cached += bytes(chunk)

    def sync(self, descriptor, _):
        self.open[descriptor].durable = self.open[descriptor].cached

    def sync_folder(self, path, _):
        found = self._folder(path)
        found.durable = dict(found.cached)

    def rename(self, old, new, _):
        self._folder(new.parent).cached[new.name] = self._folder(old.parent).cached.pop(old.name)

    replace = rename

    def remove(self, path, _):
        del self._folder(path.parent).cached[path.name]

    remove_folder = remove


def _after_crash(found: Folder, names_survive: bool) -> Folder:
    entries = found.cached if names_survive else found.durable
    copy = Folder()
    for name, part in entries.items():
        copy.cached[name] = _after_crash(part, names_survive) if isinstance(part, Folder) else File(part.durable)
    return copy


def _write(found: Folder, path: Path) -> None:
    path.mkdir()
    for name, part in found.cached.items():
        if isinstance(part, Folder):
            _write(part, path / name)
        else:
            (path / name).write_bytes(part.cached)


def _save(owner, step: int) -> None:
    owner.publish({"model.safetensors": [str(step).encode() * 9]})
    contents = Contents({"w": torch.full((2,), float(step))}, {}, {}, {"value": step})
    checkpoint.save(owner.checkpoints, step, contents)
    checkpoint.prune(owner.checkpoints, 1, ())


def test_after_power_loss_at_any_moment_the_last_announced_checkpoint_is_there(tmp_path, monkeypatch):
    root = tmp_path / "disk"
    root.mkdir()
    noted = Disk(monkeypatch, root)
    announced = []
    with claim(root / "run") as owner:
        owner.publish({"config.json": [b"{}\n"]})
        for step in (1, 2, 3):
            _save(owner, step)
            announced.append((len(noted.crashes), step))
    monkeypatch.undo()
    assert len(noted.crashes) > 150
    for moment, (state, _) in enumerate(noted.crashes):
        least = max((step for when, step in announced if when <= moment), default=0)
        _require_sound(state, tmp_path / "crashed", least)


def _require_sound(state: Folder, path: Path, least: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    _write(state, path)
    run = path / "run"
    if (run / "manifest.json").exists():
        listed = manifest.read(run).files
        # What is being written for the first time may still be missing; everything else verifies.
        coming = [name for name, record in listed.items() if record.replacing and record.previous is None]
        manifest.verify(run, [name for name in listed if name not in coming or (run / name).exists()], extras=False)
    newest, problems = checkpoint.newest(run / "checkpoints", fall_back=False)
    assert not problems
    assert (int(newest.name) if newest else 0) >= least


@pytest.mark.parametrize("forgotten", ["sync", "sync_folder"])
def test_the_check_notices_a_forgotten_sync(tmp_path, monkeypatch, forgotten):
    """A seeded fault: without fsync of files, or of folders, some crash loses an announced checkpoint."""
    monkeypatch.setattr(Disk, forgotten, lambda *arguments: None)
    with pytest.raises((AssertionError, CheckpointError)):
        test_after_power_loss_at_any_moment_the_last_announced_checkpoint_is_there(tmp_path, monkeypatch)
