"""Saving in the background: training goes on meanwhile, and what is written is what was there at the step."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from regard.errors import NumericError
from regard.storage import disk, manifest, tensors
from regard.training import checkpoint, saving
from tiny_run import Recorder, Steps, run

FILES = ("model.safetensors", "optimiser.safetensors")
PATIENCE = 20.0  # seconds after which a test that waits has failed


class Gate:
    """Holds the folder of one checkpoint up until it is opened."""

    def __init__(self, monkeypatch, step: int) -> None:
        self.open, self.reached = threading.Event(), threading.Event()
        real = disk.make_folder

        def held(path: Path) -> None:
            if path.name.startswith(f".tmp-{step}-"):
                self.reached.set()
                assert self.open.wait(PATIENCE)
            real(path)

        monkeypatch.setattr(disk, "make_folder", held)


class Watched(Steps):
    """Calls somebody before a batch is read."""

    def __init__(self, at: int, call) -> None:
        super().__init__()
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "call", call)

    def batch(self, step: int, batch_size: int):
        if step == self.at:
            self.call()
        return super().batch(step, batch_size)


@pytest.mark.parametrize("ema", [0.0, 0.9])
@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_what_is_written_is_what_was_there_at_the_step(tmp_path, name, ema):
    for path, in_background in ((tmp_path / "one", False), (tmp_path / "two", True)):
        run(path, name, save_async=in_background, ema=ema, keep=9)
    for step in (3, 6, 9, 12):
        one, two = (
            checkpoint.verify(path / "checkpoints" / f"{step:08d}") for path in (tmp_path / "one", tmp_path / "two")
        )
        assert [one.files[file] for file in FILES] == [two.files[file] for file in FILES]
    assert manifest.read(tmp_path / "one").files[FILES[0]] == manifest.read(tmp_path / "two").files[FILES[0]]


def test_training_goes_on_while_a_save_is_written_and_the_next_save_waits_for_it(tmp_path, monkeypatch):
    gate, seen = Gate(monkeypatch, 3), Recorder()
    saves = list[list[int]]()

    def asked() -> None:
        # A batch is read ahead of its step: when this one is asked for, a step after the save has been made.
        assert gate.reached.wait(PATIENCE)
        saves.append(checkpoint.steps(tmp_path / "run" / "checkpoints"))
        gate.open.set()

    run(tmp_path / "run", sampler=Watched(5, asked), display=seen, budget="9steps", evaluate_every=100)
    assert saves == [[]]
    assert seen.saves == [3, 6, 9]


def test_an_error_waits_for_the_save_that_is_under_way(tmp_path, monkeypatch):
    gate, seen = Gate(monkeypatch, 3), Recorder()

    class Bad(Steps):
        def batch(self, step: int, batch_size: int):
            if step == 5:
                assert gate.reached.wait(PATIENCE)
                gate.open.set()
                raise NumericError("step 5: bad")
            return super().batch(step, batch_size)

    with pytest.raises(NumericError, match="step 5: bad"):
        run(tmp_path / "run", sampler=Bad(), display=seen, evaluate_every=100)
    assert seen.saves == [3]
    checkpoint.verify(tmp_path / "run" / "checkpoints" / "00000003")


def test_a_save_that_nobody_waits_for_is_given_up_and_leaves_nothing(tmp_path, monkeypatch):
    gate = Gate(monkeypatch, 3)

    class Left(Steps):
        def batch(self, step: int, batch_size: int):
            if step == 5:
                assert gate.reached.wait(PATIENCE)
                threading.Timer(0.2, gate.open.set).start()
                raise KeyboardInterrupt
            return super().batch(step, batch_size)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", sampler=Left(), evaluate_every=100)
    assert disk.names(tmp_path / "run" / "checkpoints") == []


def test_copies_are_made_in_the_memory_of_those_before():
    room = dict[str, torch.Tensor]()
    first = tensors.copied({"a": torch.ones(3), "b": torch.arange(2)}, room)
    place = first["a"].data_ptr()
    second = tensors.copied({"a": torch.zeros(3)}, room)
    assert second["a"].data_ptr() == place
    assert second["a"].tolist() == [0, 0, 0]
    assert tensors.copied({"a": torch.zeros(4)}, room)["a"].shape == (4,)


def test_a_machine_without_room_for_copies_writes_while_training_waits(tmp_path, monkeypatch):
    threads = list[str]()
    real = disk.make_folder
    monkeypatch.setattr(disk, "make_folder", lambda path: (threads.append(threading.current_thread().name), real(path)))
    monkeypatch.setattr(saving, "host_memory", lambda: 1000)
    run(tmp_path / "run")
    assert set(threads) == {threading.current_thread().name}
