"""A run that is resumed with a budget that it has spent already."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from calling import call_here

from regard.tasks.outcome import longer
from regard.training.display import Result


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("[!.]*")) if file.is_file()
    }


@pytest.fixture
def run(here: Path, trained: Path) -> Path:
    """A run of thirty steps that has ended."""
    shutil.copytree(trained, here / "run")
    return here / "run"


def test_a_budget_that_is_spent_is_refused_with_one_that_is_not(run: Path):
    before = contents(run)
    outcome = call_here("train", "--resume", "--out", "run", "--budget", "20steps")
    assert outcome.code == 2
    assert "budget 20steps is already spent (30steps in all); give more, e.g. --budget 60steps" in outcome.err
    assert contents(run) == before
    assert call_here("train", "--resume", "--out", "run", "--budget", "31steps").code == 0


@pytest.mark.parametrize("words", [["--resume"], ["--resume", "auto", "--budget", "30steps"]])
def test_a_run_that_has_ended_says_so_and_is_left_as_it_is(words: list[str], run: Path):
    before = contents(run)
    outcome = call_here("train", "--out", "run", *words)
    assert outcome.code == 0, outcome.err
    assert "budget 30steps is already spent (30steps in all)" in outcome.out
    assert "--budget 60steps" in outcome.out
    assert contents(run) == before


def test_a_run_that_ended_early_says_what_goes_on(here: Path, trained: Path):
    data = str(trained.parent / "my.txt")
    flags = ("--model", "fnn", "--size", "tiny", "--set", "train.length=16", "--set", "train.batch_size=4")
    early = ("--budget", "400steps", "--set", "train.patience=1", "--set", "train.evaluate_every=1")
    assert call_here("train", data, "--out", "run", *flags, *early, "--set", "train.lr=10").code == 0
    before = contents(here / "run")
    outcome = call_here("train", "--resume", "--out", "run", "--budget", "500steps")
    assert outcome.code == 0, outcome.err
    assert "a larger train.patience" in outcome.out
    assert contents(here / "run") == before


@pytest.mark.parametrize(
    ("budget", "seconds", "expected"), [("2m", 121.0, "4m"), ("5s", 22.5, "45s"), ("40steps", 9.0, "80steps")]
)
def test_what_to_do_next_goes_on(budget: str, seconds: float, expected: str):
    assert longer(budget, Result(Path(), 40, 1000, seconds, None, None, None, None, "budget")) == expected


def test_the_help_says_that_it_is_the_total():
    assert "with --resume the total" in " ".join(call_here("train", "--help").out.split())
