"""Quantiles of Student's t against the printed tables and against the two cases with a closed form."""

from __future__ import annotations

import math

import pytest

from regard.evaluation.student import outside, t_quantile

# Two-sided 95%, as tables print it.
TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}
TABLE |= {11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 20: 2.086, 25: 2.060, 29: 2.045, 30: 2.042}
TABLE |= {40: 2.021, 60: 2.000, 80: 1.990, 100: 1.984, 120: 1.980, 1000: 1.962, 10**6: 1.960}
OTHER_LEVELS = [(5, 0.99, 4.032), (10, 0.90, 1.812), (30, 0.998, 3.385), (2, 0.5, 0.816), (120, 0.999, 3.373)]


@pytest.mark.parametrize(("degrees", "t"), TABLE.items())
def test_quantiles_are_those_of_the_tables(degrees: int, t: float) -> None:
    assert t_quantile(degrees) == pytest.approx(t, abs=5.1e-4)


@pytest.mark.parametrize(("degrees", "level", "t"), OTHER_LEVELS)
def test_so_are_those_at_other_levels(degrees: int, level: float, t: float) -> None:
    assert t_quantile(degrees, level) == pytest.approx(t, abs=5.1e-4)


@pytest.mark.parametrize("level", [0.01, 0.3, 0.5, 0.9, 0.95, 0.999, 0.999999])
def test_one_and_two_degrees_have_a_closed_form(level: float) -> None:
    assert t_quantile(1, level) == pytest.approx(math.tan(math.pi * level / 2), rel=1e-9)
    assert t_quantile(2, level) == pytest.approx(level * math.sqrt(2 / (1 - level**2)), rel=1e-9)


def test_quantiles_fall_towards_the_normal_one_and_never_below() -> None:
    found = [t_quantile(degrees) for degrees in range(1, 300)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 1.959964


def test_without_freedom_there_is_no_quantile() -> None:
    with pytest.raises(ValueError, match="0 degrees"):
        t_quantile(0)


@pytest.mark.parametrize("degrees", [1, 2.5, 4, 61.3])
def test_beyond_a_quantile_lies_what_its_level_leaves(degrees: float) -> None:
    assert outside(t_quantile(degrees, 0.95), degrees) == pytest.approx(0.05, abs=1e-9)
    assert outside(-1.0, degrees) == outside(1.0, degrees)
    assert outside(0.0, degrees) == pytest.approx(1.0)
