"""Models that write from a source, several as one: the mean of their probabilities, under the laws of each."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.core import registry
from regard.core.context import Context
from regard.core.inputs import SourceTokens
from regard.core.model import logits_of
from regard.laws.check import FACTS, LAWS
from regard.laws.result import Ledger
from regard.laws.subject import from_model, hostile
from regard.models.writer_ensemble import WriterEnsembleConfig

pytestmark = pytest.mark.usefixtures("unchecked_shapes")  # which the laws of models check
SOURCE, LENGTHS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]]), torch.tensor([5, 3])
TOKENS = torch.tensor([[0, 3, 1], [0, 4, 4]])


def several(name: str, count: int = 2) -> Any:
    torch.manual_seed(3)
    return WriterEnsembleConfig(registry.entry(name).config(11, "tiny"), count).build().double().eval()


# Laws of mixers and of tags; and parts are learnt alone. A tied table would make the poisoned word an answer, too.
OTHERS = ("reach", "equivariance", "enumeration", "learn")


@pytest.mark.parametrize(
    ("name", "settings"), [("transformer", {"tied": False}), ("bahdanau", {}), ("captioner", {"decoder": "lstm"})]
)
@pytest.mark.parametrize("law", [law for law in LAWS if law not in OTHERS])
def test_several_keep_the_laws_of_one(name: str, settings: dict[str, Any], law: str) -> None:
    part = registry.entry(name).config(FACTS, "tiny", dropout=0.0, **settings)
    with hostile():
        LAWS[law](from_model(name, WriterEnsembleConfig(part, 2)), Ledger())


@torch.no_grad()
@pytest.mark.parametrize("name", ["seq2seq", "gnmt", "transformer"])
def test_its_chances_are_the_mean_of_those_of_its_parts(name: str) -> None:
    model = several(name, 3)
    read = SourceTokens(SOURCE, TOKENS, LENGTHS)
    each = torch.stack([logits_of(part, read).softmax(-1) for part in model.parts])
    assert not torch.allclose(each[0], each[1])
    torch.testing.assert_close(logits_of(model, read).exp(), each.mean(0))
    memory, lengths = model.encode(SOURCE, LENGTHS)
    torch.testing.assert_close(
        logits_of(model, TOKENS, None, Context(memory=memory, memory_lengths=lengths)).exp(), each.mean(0)
    )


@torch.no_grad()
def test_where_it_looks_is_the_mean_of_where_its_parts_look() -> None:
    model = several("bahdanau")
    state = model.start(SOURCE, LENGTHS)
    each = [part.alignment(TOKENS, own) for part, own in zip(model.parts, state.parts, strict=True)]
    torch.testing.assert_close(model.alignment(TOKENS, state), (each[0] + each[1]) / 2)
    without = several("seq2seq")
    assert without.alignment(TOKENS, without.start(SOURCE, LENGTHS)) is None


@torch.no_grad()
def test_its_loss_is_that_of_the_mean() -> None:
    model = several("transformer")
    vectors, _ = model(SourceTokens(SOURCE, TOKENS, LENGTHS))
    targets = torch.tensor([[3, 1, 2], [4, 4, 2]])
    torch.testing.assert_close(model.head(vectors, targets), -vectors.gather(-1, targets[..., None]).sum())
