"""The straight line through logarithms, and the rule of the study of sizes."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from regard.studies.claims.larger import Sizes, fit_of

SIZES = (1000, 4000, 16000, 64000)


def sized(own: tuple[float, ...], other: tuple[float, ...] = (3.0, 2.8, 2.6, 2.42)) -> dict[str, Any]:
    fits = {"own": fit_of(SIZES, own), "other": fit_of(SIZES, other), "excess": fit_of(SIZES, own)}
    return {"parameters": list(SIZES), "own": list(own), "other": list(other), "fit": fits}


def test_a_power_law_is_found_exactly() -> None:
    found = fit_of(SIZES, [5 * size**-0.2 for size in SIZES])
    assert found["slope"] == pytest.approx(-0.2)
    assert found["r2"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("own", "outcome"),
    [
        ((2.0, 1.8, 1.62, 1.45), "holds"),
        ((2.0, 2.1, 1.62, 1.45), "does not hold"),
        ((2.0, 1.2, 1.19, 1.18), "does not hold"),
    ],
)
def test_losses_must_fall_along_a_straight_line(own: tuple[float, ...], outcome: str) -> None:
    assert Sizes().judge([sized(own)] * 3).outcome == outcome


def test_the_figure_is_well_formed() -> None:
    ElementTree.fromstring(Sizes().figure([sized((2.0, 1.8, 1.62, 1.45))] * 2))
