"""The learning rate of the Transformer paper (Vaswani et al. 2017, section 5.3) from the inverse-root schedule."""

from __future__ import annotations

import math

import pytest
from exact import load

from regard.training.schedule import factor
from regard.training.settings import TrainSettings

GOLDEN = load("noam")


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (1024, 4000), (128, 400)])
@pytest.mark.parametrize("floor", [0.0, TrainSettings().min_lr])
def test_inverse_root_is_the_rate_of_the_paper(d_model: int, warmup: int, floor: float) -> None:
    peak = 1 / math.sqrt(d_model * warmup)
    for step, expected in GOLDEN[f"d_{d_model}_warmup_{warmup}"].items():
        rate = peak * factor("inverse_root", step=int(step) - 1, progress=0.3, warmup=warmup, floor=floor)
        assert rate == pytest.approx(expected, rel=1e-12)


def test_the_peak_is_the_last_step_of_the_warm_up() -> None:
    rates = [factor("inverse_root", step=step, progress=0.3, warmup=4000) for step in range(3990, 4010)]
    assert rates.index(max(rates)) + 3990 == 4000 - 1
    assert max(rates) / math.sqrt(512 * 4000) == pytest.approx(GOLDEN["peak_value_d_512_warmup_4000"], rel=1e-12)
