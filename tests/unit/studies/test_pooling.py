"""The rule of the study of poolings."""

from __future__ import annotations

from xml.etree import ElementTree

from regard.studies.claims.pooling import Poolings


def test_attention_must_be_ten_points_above_the_last_state() -> None:
    enough = {"last": 0.6, "first": 0.5, "mean": 0.7, "max": 0.8, "attention": 0.75}
    assert Poolings().judge([enough]).outcome == "holds"
    assert Poolings().judge([enough | {"attention": 0.65}]).outcome == "does not hold"
    assert Poolings().judge([enough, enough | {"attention": 0.65}]).outcome == "not settled"


def test_the_figure_is_well_formed() -> None:
    ElementTree.fromstring(Poolings().figure([dict.fromkeys(("last", "first", "mean", "max", "attention"), 0.5)]))
