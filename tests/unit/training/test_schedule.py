from __future__ import annotations

import math

import pytest

from regard.training.schedule import factor


def test_warm_up_is_a_straight_line_to_the_full_rate():
    parts = [factor("constant", step=0, progress=p, warmup=0.2) for p in (0.0, 0.05, 0.1, 0.2, 0.9)]
    assert parts == pytest.approx([0, 0.25, 0.5, 1, 1])
    counted = [factor("constant", step=s, progress=0.5, warmup=4) for s in (0, 1, 3, 10)]
    assert counted == pytest.approx([0.25, 0.5, 1, 1])
    assert factor("constant", step=0, progress=0.0, warmup=0) == 1


@pytest.mark.parametrize(("schedule", "middle"), [("cosine", 0.55), ("linear", 0.55), ("constant", 1.0)])
def test_decay_starts_at_one_after_the_warm_up_and_ends_at_the_floor(schedule, middle):
    at = [factor(schedule, step=9, progress=p, warmup=0.2, floor=0.1) for p in (0.2, 0.6, 1.0)]
    assert at == pytest.approx([1, middle, 1.0 if schedule == "constant" else 0.1])


def test_cosine_is_steepest_in_the_middle():
    at = [factor("cosine", step=0, progress=p, warmup=0) for p in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert at == pytest.approx([1, (2 + math.sqrt(2)) / 4, 0.5, (2 - math.sqrt(2)) / 4, 0])
