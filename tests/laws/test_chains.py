"""The law of enumeration: asked of whatever chooses tags together, and broken by what does not choose the best."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.core import registry
from regard.laws import LawResult, check_model
from regard.laws.check import FACTS
from regard.laws.subject import from_model
from regard.layers.crf import CrfHead
from regard.models.crf import Crf
from regard.models.hmm import Hmm

pytestmark = pytest.mark.usefixtures("unchecked_shapes")
TAGGERS = ("tagger", "crf", "hmm")


def enumeration(name: str) -> LawResult:
    return next(one for one in check_model(name) if one.law == "enumeration")


@pytest.mark.parametrize("name", TAGGERS)
def test_it_holds_of_what_chooses_tags_together(name: str) -> None:
    assert enumeration(name).held is True


@pytest.mark.parametrize("name", ["most_frequent", "classifier", "lstm"])
def test_it_does_not_apply_to_what_chooses_each_for_itself(name: str) -> None:
    assert (enumeration(name).held, enumeration(name).detail) == (None, "it chooses no tags together")


@pytest.mark.parametrize(("name", "part"), [("tagger", CrfHead), ("crf", Crf), ("hmm", Hmm)])
def test_tags_that_are_not_the_best_break_it(name: str, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def worst(self: Any, vectors: Tensor, lengths: Tensor, allowed: Any = None) -> Tensor:
        found = (self(vectors) if part is CrfHead else vectors).argmin(-1)
        return found.masked_fill(torch.arange(found.shape[1]) >= lengths[:, None], 0)

    monkeypatch.setattr(part, "decode", worst)
    found = enumeration(name)
    assert found.held is False
    assert "the score of the tags that are chosen" in found.detail


@pytest.mark.parametrize(("name", "part"), [("tagger", CrfHead), ("crf", Crf), ("hmm", Hmm)])
def test_chances_of_each_word_for_itself_break_it(name: str, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(self: Any, vectors: Tensor, lengths: Tensor) -> Tensor:
        return (self(vectors) if part is CrfHead else vectors).log_softmax(-1)

    monkeypatch.setattr(part, "log_chances", alone)
    found = enumeration(name)
    assert found.held is False
    assert "the chance of each tag" in found.detail


def test_the_gradient_of_a_chain_is_looked_at_through_its_chances() -> None:
    subject = from_model("tagger", registry.entry("tagger").config(FACTS, "tiny", dropout=0.0))
    found = subject.every_answer(subject.inputs(2, 3), subject.state(2))
    assert found.shape == (2, 3, 2 * FACTS.n_classes)
