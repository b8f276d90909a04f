"""The moments that `benchmarks/kill_resume.py` chooses, on a clock of one second a step."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"


@pytest.mark.parametrize("seed", range(10))
def test_twenty_kills_spread_over_a_run_of_300_steps(seed: int):
    spec = importlib.util.spec_from_file_location("kill_resume", FILE)
    assert spec is not None
    assert spec.loader is not None
    kill_resume = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kill_resume)
    chance, saved, seen = random.Random(seed), 0, []
    for left in range(20, 0, -1):
        seconds = kill_resume.moment(chance, 300 - saved, left, 1.0)
        saved += int(seconds) // kill_resume.SAVE_EVERY * kill_resume.SAVE_EVERY
        seen.append(saved)
    assert 200 <= seen[-1] < 300, "the last kills come late in the run, and none after its end"
    assert all(later - earlier <= 100 for earlier, later in zip([0, *seen], seen, strict=False))
