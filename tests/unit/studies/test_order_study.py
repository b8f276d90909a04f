"""Order: what is exact about it, and the rule."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from regard.data.batch import NOT_COUNTED
from regard.studies.claims.order import FORMS, Order, _batch, _config, shuffle_error


def seed(**changes) -> dict:
    found = {name: {"shuffle_error": 0.5, "accuracy": 1.0} for name in FORMS}
    return found | {"none": {"shuffle_error": 1e-15, "accuracy": 0.15}, "chance": 1 / 7} | changes


@pytest.mark.parametrize("name", FORMS)
def test_only_attention_without_positions_and_mask_commutes_with_shuffling(name: str):
    error = shuffle_error(_config(*FORMS[name]), 3)
    assert error < 1e-12 if name == "none" else error > 1e-3


def test_targets_are_the_words_before():
    inputs, targets = _batch(5, 40)
    assert (targets[:, 1:] == inputs[:, :-1]).all()
    assert (targets[:, 0] == NOT_COUNTED).all()
    assert all(len(set(row)) == len(row) for row in inputs.tolist())


def test_the_verdict_needs_the_failure_and_the_success():
    study = Order()
    assert study.judge([seed()]).outcome == "holds"
    assert study.judge([seed(none={"shuffle_error": 1e-15, "accuracy": 0.3})]).outcome == "does not hold"
    assert study.judge([seed(), seed(rotary={"shuffle_error": 0.5, "accuracy": 0.8})]).outcome == "not settled"
    assert study.judge([seed(alibi={"shuffle_error": 1e-9, "accuracy": 1.0})]).outcome == "does not hold"
    ElementTree.fromstring(study.figure([seed()]))
