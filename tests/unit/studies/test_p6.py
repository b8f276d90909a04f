"""The straight line through logarithms, and the rules of the studies of size, fine-tuning and pooling."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from regard.studies.p5 import FineTuned
from regard.studies.p6 import Sizes, fit_of
from regard.studies.pooling import Poolings

SIZES = (1000, 4000, 16000, 64000)


def sized(own: tuple[float, ...], other: tuple[float, ...] = (3.0, 2.8, 2.6, 2.42)) -> dict[str, Any]:
    fits = {"own": fit_of(SIZES, own), "other": fit_of(SIZES, other)}
    return {"parameters": list(SIZES), "own": list(own), "other": list(other), "fit": fits}


def tuned(before: tuple[float, float], nothing: tuple[float, float], recurrent: float) -> dict[str, Any]:
    return {
        "pre-trained": dict(zip(("100", "200"), before, strict=True)),
        "from nothing": dict(zip(("100", "200"), nothing, strict=True)),
        "lstm": {"100": recurrent, "200": recurrent},
    }


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


@pytest.mark.parametrize(
    ("one", "outcome"),
    [
        (tuned((0.9, 0.95), (0.8, 0.85), 0.85), "holds"),
        (tuned((0.84, 0.95), (0.8, 0.82), 0.8), "does not hold"),
        (tuned((0.9, 0.95), (0.8, 0.93), 0.8), "does not hold"),
        (tuned((0.9, 0.95), (0.8, 0.85), 0.92), "does not hold"),
    ],
)
def test_each_part_of_the_rule_of_fine_tuning_decides(one: dict[str, Any], outcome: str) -> None:
    assert FineTuned().judge([one] * 3).outcome == outcome


def test_attention_must_be_ten_points_above_the_last_state() -> None:
    enough = {"last": 0.6, "first": 0.5, "mean": 0.7, "max": 0.8, "attention": 0.75}
    assert Poolings().judge([enough]).outcome == "holds"
    assert Poolings().judge([enough | {"attention": 0.65}]).outcome == "does not hold"
    assert Poolings().judge([enough, enough | {"attention": 0.65}]).outcome == "not settled"


def test_figures_are_well_formed() -> None:
    ElementTree.fromstring(Sizes().figure([sized((2.0, 1.8, 1.62, 1.45))] * 2))
    ElementTree.fromstring(FineTuned().figure([tuned((0.9, 0.95), (0.8, 0.85), 0.85)]))
    ElementTree.fromstring(Poolings().figure([dict.fromkeys(("last", "first", "mean", "max", "attention"), 0.5)]))
