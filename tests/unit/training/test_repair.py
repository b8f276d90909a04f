"""A damaged run folder is mended before the first step, or refused before it; never after the last."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.errors import CheckpointError
from regard.training import checkpoint, run_folder
from tiny_run import Recorder, run

LONGER = {"budget": "14steps", "lr": 50.0, "override": ("budget", "lr")}  # so large a rate that nothing gets better


class Never:
    """A sampler whose first batch is a failure of the test."""

    def batch(self, step: int, batch_size: int) -> Any:
        pytest.fail(f"step {step} was made")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink], ids=["flipped", "cut", "missing"])
@pytest.mark.parametrize("ema", [0.0, 0.5], ids=["plain", "average"])
def test_resume_puts_the_best_weights_back_from_their_checkpoint_before_any_step(tmp_path: Path, damage, ema: float):
    path, display = tmp_path / "run", Recorder()
    _, result = run(path, ema=ema)
    assert result.best_step == 12
    best = (path / "model.safetensors").read_bytes()
    damage(path / "model.safetensors")
    with pytest.raises(ZeroDivisionError):
        run(path, resume="last", ema=ema, sampler=Failing(), display=display, **LONGER)
    assert (path / "model.safetensors").read_bytes() == best
    assert "put back from the checkpoint of step 12" in " ".join(display.notes)
    _, result = run(path, resume="last", ema=ema, **LONGER)
    assert (result.step, result.best_step) == (14, 12)
    assert (path / "model.safetensors").read_bytes() == best
    assert set(run_folder.verify_run(path).values()) == {"ok"}


class Failing:
    """A sampler that fails at its first batch."""

    def batch(self, step: int, batch_size: int) -> Any:
        raise ZeroDivisionError


def test_best_weights_that_no_checkpoint_holds_are_told_before_any_step_and_auto_goes_on(tmp_path: Path):
    path, display = tmp_path / "run", Recorder()
    _, result = run(path)
    shutil.rmtree(checkpoint.path_of(path / "checkpoints", result.best_step))
    last = checkpoint.steps(path / "checkpoints")[-1]
    flip(path / "model.safetensors")
    state = (path / "manifest.json").read_bytes()
    # The last checkpoint knows of a better step before it, which had none of its own.
    assert last not in (result.best_step, 4, 8)
    with pytest.raises(CheckpointError, match=r"model.safetensors: SHA-256 .* --resume auto goes on without them"):
        run(path, resume="last", sampler=Never())
    assert (path / "manifest.json").read_bytes() == state
    _, result = run(path, resume="auto", display=display)
    assert "they are chosen anew" in " ".join(display.notes)
    assert result.best_step == 12
    assert set(run_folder.verify_run(path).values()) == {"ok"}


def test_resume_puts_a_damaged_tokenizer_back(tmp_path: Path):
    path, display = tmp_path / "run", Recorder()
    run(path)
    (path / "tokenizer.json").write_bytes(b"[]\n")
    run(path, resume="last", display=display, budget="13steps", override=("budget",))
    assert "tokenizer.json" in " ".join(display.notes)
    assert set(run_folder.verify_run(path).values()) == {"ok"}
