"""What is asked for in the recall tasks, and the rule of the study."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from regard.data.batch import NOT_COUNTED
from regard.data.worlds.stories import Stories
from regard.studies.claims.forget import Forget
from regard.studies.claims.recall import letter_rows, story_rows


def found(rnn: float = 0.5, gpt: float = 1.0, lstm_reach: float = 0.9, story: float = 0.6) -> dict[str, Any]:
    letters = {"rnn": {"5": 0.9, "50": rnn}, "lstm": {"5": lstm_reach, "50": 0.5}, "gpt": {"5": 1.0, "50": gpt}}
    return {"letters": letters, "stories": {"rnn": {"64": 0.1}, "lstm": {"64": 0.2}, "gpt": {"64": story}}}


def test_only_the_first_letter_counts() -> None:
    inputs, targets = letter_rows(50, 7, 1)
    assert (targets[:, -1] == inputs[:, 0]).all()
    assert (targets[:, :-1] == NOT_COUNTED).all()
    assert set(inputs[:, :-1].flatten().tolist()) == {0, 1}


def test_story_rows_count_what_the_world_says_is_recalled() -> None:
    train, _ = story_rows(2, (5, 2), 3)
    world = Stories(train=5, valid=2, seed=3, facts=1, events=2)
    for row, text in enumerate(world.documents("train")):
        counted = (train.targets[row] != NOT_COUNTED).nonzero()[:, 0].tolist()
        assert counted == [index for index, _ in world.recall_points(text)]


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, "holds"),
        ({"rnn": 0.7}, "does not hold"),
        ({"gpt": 0.9}, "does not hold"),
        ({"lstm_reach": 0.6}, "does not hold"),
        ({"story": 0.25}, "does not hold"),
    ],
)
def test_each_part_of_the_rule_decides(change: dict[str, float], outcome: str) -> None:
    assert Forget().judge([found(**change)] * 2).outcome == outcome


def test_seeds_that_disagree_settle_nothing() -> None:
    assert Forget().judge([found(), found(rnn=0.9)]).outcome == "not settled"


def test_the_figure_is_well_formed() -> None:
    ElementTree.fromstring(Forget().figure([found()]))
