"""The rule of the study of fine-tuning."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from regard.studies.claims.pretraining import FineTuned


def tuned(before: tuple[float, float], nothing: tuple[float, float], recurrent: float) -> dict[str, Any]:
    return {
        "pre-trained": dict(zip(("100", "200"), before, strict=True)),
        "from nothing": dict(zip(("100", "200"), nothing, strict=True)),
        "lstm": {"100": recurrent, "200": recurrent},
    }


@pytest.mark.parametrize(
    ("one", "outcome"),
    [
        (tuned((0.9, 0.95), (0.8, 0.85), 0.85), "holds"),
        (tuned((0.84, 0.95), (0.8, 0.82), 0.8), "does not hold"),
        (tuned((0.9, 0.95), (0.8, 0.93), 0.8), "does not hold"),
        (tuned((0.9, 0.95), (0.8, 0.85), 0.92), "does not hold"),
    ],
)
def test_each_part_of_the_rule_decides(one: dict[str, Any], outcome: str) -> None:
    assert FineTuned().judge([one] * 3).outcome == outcome


def test_the_figure_is_well_formed() -> None:
    ElementTree.fromstring(FineTuned().figure([tuned((0.9, 0.95), (0.8, 0.85), 0.85)]))
