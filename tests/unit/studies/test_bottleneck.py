"""Copying, and the rule of the study."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from regard.core.model import logits_of
from regard.studies.claims.bottleneck import Bottleneck, reach
from regard.studies.claims.recall import Copier, copying, symbol_rows

SHORT, LONG, ALL = {"1": 1.0, "2": 0.5, "4": 0.2}, {"1": 1.0, "2": 0.97, "4": 0.6}, {"1": 1.0, "2": 1.0, "4": 0.96}


def found(narrow: Any = SHORT, wide: Any = LONG, looking: Any = (LONG, ALL)) -> dict[str, Any]:
    return {"seq2seq": {"8": narrow, "32": wide}, "bahdanau": {"8": looking[0], "32": looking[1]}}


def test_reach_ends_at_the_first_length_that_is_not_recalled() -> None:
    assert [reach(one) for one in (SHORT, LONG, ALL, {"1": 0.5, "2": 1.0})] == [1, 2, 4, 0]


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau"])
def test_a_copier_does_not_see_the_symbol_that_it_is_asked_for_except_by_its_memory(name: str) -> None:
    torch.manual_seed(0)
    copier = Copier(copying(name, d_model=8)).double().eval()
    symbols, _ = symbol_rows(2, 5, 0, "cpu")
    memory, _ = copier.model.encode(symbols)
    copier.model.encoder.register_forward_hook(lambda *_: (memory, None))
    other = symbols.clone()
    other[:, 3] = (other[:, 3] + 1) % 16
    before, after = logits_of(copier, symbols), logits_of(copier, other)
    assert torch.allclose(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4], after[:, 4])


@pytest.mark.parametrize(
    ("one", "outcome"),
    [
        (found(), "holds"),
        (found(narrow=LONG), "does not hold"),
        (found(wide=ALL), "does not hold"),
        (found(looking=(SHORT, ALL)), "does not hold"),
        (found(looking=(LONG, LONG)), "does not hold"),
    ],
)
def test_each_part_of_the_rule_decides(one: dict[str, Any], outcome: str) -> None:
    assert Bottleneck().judge([one] * 3).outcome == outcome


def test_the_figure_is_well_formed() -> None:
    ElementTree.fromstring(Bottleneck().figure([found(), found()]))
