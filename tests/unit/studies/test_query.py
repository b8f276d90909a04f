"""The A/B task: what E = K = Q answers is known by hand."""

from __future__ import annotations

from xml.etree import ElementTree

import torch

from regard.core.model import logits_of
from regard.data.worlds.ab import answer
from regard.studies.claims.query import Looking, Query, strings


def test_strings_and_answers_are_those_of_the_world():
    letters, answers = strings(4)
    assert len(letters) == 16
    for row, told in zip(letters.tolist(), answers.tolist(), strict=True):
        assert "AB"[told] == answer("".join("AB"[letter] for letter in row))


def test_with_the_word_itself_as_query_nine_of_sixteen_are_right():
    """Right where the last letter is B (8), and for AAAA."""
    letters, answers = strings(4)
    told = logits_of(Looking(False, False), letters).argmax(-1)
    right = (told == answers).tolist()
    assert right == [row[-1] == 1 or sum(row) == 0 for row in letters.tolist()]
    assert sum(right) == 9


def test_a_query_of_a_that_asks_for_b_solves_all():
    model = Looking(False, False)
    model.query.data = torch.tensor([[0.0, 10.0], [0.0, 10.0]])
    letters, answers = strings(4)
    assert (logits_of(model, letters).argmax(-1) == answers).all()


def seed(fixed: str = "A", right: int = 16, other: float = 3.0) -> dict:
    learned = {"right": right, "example": "B", "query_of_a": [0.0, other]}
    read = {"right": 15, "example": "B"}
    fixed_form = {"right": 9, "example": fixed}
    return {"strings": 16, "fixed": fixed_form, "fixed, read by a learned map": read, "learned": learned}


def test_the_verdict_needs_the_failure_and_the_success():
    study = Query()
    assert study.judge([seed()]).outcome == "holds"
    assert study.judge([seed(right=15)]).outcome == "does not hold"
    assert study.judge([seed(fixed="B"), seed()]).outcome == "not settled"
    assert study.judge([seed(other=-1.0)]).outcome == "does not hold"
    ElementTree.fromstring(study.figure([seed()]))
