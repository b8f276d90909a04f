"""The ladder: rungs of one size, and the rule."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from regard.studies.claims.ladder import RUNGS, Ladder
from regard.studies.entrant import parameters, width_for

VOCABULARY = 182
ORDER = {"bigram": 3.5, "5-gram": 2.9, "dan": 4.0, "fnn": 2.8, "rnn": 2.6, "lstm": 2.5, "transformer": 2.4}


def found(moved: float = 0.0, **changes: float) -> dict[str, Any]:
    perplexity = ORDER | {"backpack": 2.6, "mamba": 2.4} | changes
    return {name: {"perplexity": value, "moved": moved, "parameters": 1} for name, value in perplexity.items()}


@pytest.mark.parametrize("rung", [name for name, (_, _, every) in RUNGS.items() if every])
@pytest.mark.parametrize("target", [60_000, 2_000_000])
def test_neural_rungs_are_matched_within_five_per_cent(rung: str, target: int) -> None:
    model, settings, every = RUNGS[rung]
    width = width_for(model, VOCABULARY, target, every, **settings)
    assert abs(parameters(model, VOCABULARY, d_model=width, **settings) / target - 1) < 0.05


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, "holds"),
        ({"transformer": 2.5}, "holds"),
        ({"transformer": 2.51}, "does not hold"),
        ({"dan": 2.0}, "does not hold"),
        ({"fnn": 3.6}, "does not hold"),
        ({"lstm": 2.7}, "does not hold"),
        ({"moved": 0.1}, "does not hold"),
    ],
)
def test_each_part_of_the_rule_decides(change: dict[str, float], outcome: str) -> None:
    assert Ladder().judge([found(**change)] * 3).outcome == outcome


def test_the_figure_is_well_formed() -> None:
    ElementTree.fromstring(Ladder().figure([found(), found(lstm=2.6)]))
