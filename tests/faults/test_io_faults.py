"""Every file operation of a save fails in turn, once and from then on (the loop of "How SQLite Is Tested")."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from regard.errors import ResourceError
from regard.storage import disk, manifest
from regard.training import checkpoint, run_folder
from regard.training.checkpoint import Contents
from regard.training.run_folder import claim
from tiny_run import Recorder, run


class Faults:
    """Makes the n-th file operation fail, and the later ones too when told."""

    def __init__(self, monkeypatch, number: int, forever: bool) -> None:
        self.calls = 0
        self.number = number
        self.forever = forever
        for name in disk.OPERATIONS:
            monkeypatch.setattr(disk, name, self._failing(getattr(disk, name)))

    def _failing(self, operation):
        def wrapped(*arguments):
            self.calls += 1
            if self.calls == self.number or (self.forever and self.calls > self.number):
                if operation is REAL_CLOSE:
                    operation(*arguments)
                raise OSError(5, "Input/output error")
            return operation(*arguments)

        return wrapped


REAL_CLOSE = disk.close


def contents(value: float) -> Contents:
    return Contents({"w": torch.full((3,), value)}, {}, {"m": torch.full((2,), value)}, {"value": value})


def save_all(owner: run_folder.RunFolder, step: int) -> None:
    """What a save of the loop does: weights to use, checkpoint, pruning."""
    owner.publish({"model.safetensors": [str(step).encode() * step]})
    checkpoint.save(owner.checkpoints, step, contents(step))
    checkpoint.prune(owner.checkpoints, 2, {1})


def attempt(action, *arguments, **keywords) -> bool:
    """Whether it succeeded; a failure must be one line about the disk."""
    try:
        action(*arguments, **keywords)
    except ResourceError as error:
        text = str(error)
    else:
        return True
    assert "Input/output error" in text
    assert "\n" not in text
    return False


def require_sound(path: Path, least: int) -> None:
    """The folder verifies and its newest checkpoint is at least the last that was announced."""
    manifest.verify(path, extras=False)
    newest, problems = checkpoint.newest(path / "checkpoints", fall_back=False)
    assert newest is not None
    assert not problems
    assert int(newest.name) >= least
    assert checkpoint.read_state(newest) == {"value": float(newest.name)}
    checkpoint.verify(path / "checkpoints" / "00000001")


def no_temporary(path: Path) -> bool:
    return not [
        name
        for where in (path, path / "checkpoints")
        for name in os.listdir(where)
        if name.startswith((".tmp", ".trash"))
    ]


@pytest.mark.parametrize("forever", [False, True], ids=["once", "from then on"])
def test_a_failing_operation_loses_no_announced_checkpoint(tmp_path, monkeypatch, forever):
    with claim(tmp_path / "start") as owner:
        owner.publish({"config.json": [b"{}\n"]})
        for step in (1, 2, 3):
            save_all(owner, step)
    number, outcomes = 1, []
    while True:
        path = tmp_path / str(number)
        shutil.copytree(tmp_path / "start", path)
        with claim(path) as owner:
            faults = Faults(monkeypatch, number, forever)
            announced = attempt(save_all, owner, 4)
            monkeypatch.undo()
            require_sound(path, 4 if announced else 3)
            save_all(owner, 5)
            require_sound(path, 5)
        with claim(path):
            assert no_temporary(path)
            require_sound(path, 5)
        outcomes.append(announced)
        if faults.calls < number:
            break
        number += 1
    assert outcomes[-1]
    assert number > 35
    # A cleaning that fails is no failure of the save; everything else is.
    assert sum(outcomes) <= 12


def test_a_run_whose_disk_fails_at_any_moment_ends_in_one_line_and_continues(tmp_path, monkeypatch):
    """Not each operation but each tenth: the whole run is made every time."""
    for number in range(3, 250, 23):
        path = tmp_path / str(number)
        faults = Faults(monkeypatch, number, forever=True)
        seen = Recorder()
        attempt(run, path, "lstm", budget="8steps", save_every=2, display=seen)
        monkeypatch.undo()
        if faults.calls < number:
            break
        _, result = run(path, "lstm", budget="8steps", save_every=2, resume="auto")
        assert result.step == 8
        assert no_temporary(path)
        if seen.saves:
            assert max(seen.saves) >= 2
    assert number > 100
