"""Runs that another process is training, and folders that cannot be made."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from calling import TEXT, TINY, call_here

from regard.errors import LockedError, ResourceError
from regard.storage import manifest
from regard.storage.lock import only_writer
from regard.training.run_folder import WEIGHTS

HOLDER = f"process {os.getpid()} on "


@pytest.fixture
def begun(here: Path, trained: Path) -> Path:
    """A run without weights, as a training leaves it before its first evaluation."""
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    copy = here / "run"
    shutil.copytree(trained, copy)
    found = manifest.read(copy)
    files = {name: record for name, record in found.files.items() if name != WEIGHTS}
    (copy / manifest.NAME).write_bytes(manifest.Manifest(files=files).to_bytes())
    (copy / WEIGHTS).unlink()
    return copy


@pytest.mark.parametrize("words", [["generate", "run", "the cat"], ["evaluate", "run"], ["score", "run", "the cat"]])
def test_a_run_that_is_being_trained_has_its_process_named(words: list[str], begun: Path):
    with only_writer(begun):
        outcome = call_here(*words)
    assert outcome.code == LockedError.exit_code, outcome.err
    assert f"run: {HOLDER}" in outcome.err
    assert "is training it" in outcome.err
    assert "--resume" not in outcome.err
    alone = call_here(*words)
    assert "continue the training with --resume" in alone.err


def test_a_run_that_has_just_begun_is_no_other_folder(here: Path):
    with only_writer(here / "run"):
        outcome = call_here("generate", "run", "the cat")
    assert (outcome.code, f"{HOLDER}" in outcome.err) == (LockedError.exit_code, True), outcome.err


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_training_into_a_run_in_use_is_told_before_the_data_is_read(
    more: list[str], begun: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("regard.run.train.load_dataset", lambda *_: pytest.fail("it was read"))
    data = [] if more else ["my.txt", *TINY]
    with only_writer(begun):
        outcome = call_here("train", *data, "--out", "run", "--budget", "99steps", *more)
    assert outcome.code == LockedError.exit_code, outcome.err
    assert f"in use by {HOLDER}" in outcome.err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize("verb", ["train", "compare"])
def test_of_a_folder_that_cannot_be_made_no_checkpoint_is_spoken_of(verb: str, here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    model = "--models" if verb == "compare" else "--model"
    outcome = call_here(verb, "my.txt", model, "fnn", "--size", "tiny", "--out", "/proc/x", "--budget", "12steps")
    assert outcome.code == ResourceError.exit_code, outcome.err
    assert "choose another --out" in outcome.err
    assert "checkpoint" not in outcome.err
