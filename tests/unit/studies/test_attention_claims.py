"""Claims about attention and recurrences as mechanisms: exact parts, and rules on made-up numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
import torch

from regard.data.batch import NOT_COUNTED
from regard.mixers.attention import AttentionConfig
from regard.mixers.rnn import RnnConfig
from regard.studies.claims.access import FACTS, NOISE, VALUES, RandomAccess, needle_rows
from regard.studies.claims.electricity import Electricity
from regard.studies.claims.matrix import MatrixForm, at_once, row_by_row
from regard.studies.claims.path import PathLength, last_output, operations_between
from regard.studies.claims.scale import LENGTHS, Scale
from regard.studies.reproduce import names, study


@pytest.mark.parametrize("causal", [False, True])
def test_row_by_row_and_at_once_are_what_torch_calls_attention(causal: bool) -> None:
    q, k, v = torch.randn(3, 7, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wanted = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    torch.testing.assert_close(row_by_row(q, k, v, causal), wanted)
    torch.testing.assert_close(at_once(q, k, v, causal), wanted)


def test_the_way_back_is_counted_in_operations() -> None:
    x = torch.ones(2, requires_grad=True)
    first = x.clone()
    assert operations_between(first.exp().sin(), first) == 2
    assert operations_between(first.exp() + first, first) == 1


def test_a_recurrence_has_a_longer_way_back_for_every_step_and_attention_has_not() -> None:
    def way(config: Any, length: int, by_steps: bool) -> int:
        torch.manual_seed(0)
        inputs = [torch.randn(1, 8, requires_grad=True).clone() for _ in range(length)]
        return operations_between(last_output(config.build(), inputs, by_steps), inputs[0])

    assert way(AttentionConfig(8, 2), 3, False) == way(AttentionConfig(8, 2), 9, False)
    assert way(RnnConfig(8), 9, True) == 3 * way(RnnConfig(8), 3, True)


def test_needles_are_where_they_are_said_to_be_and_their_question_has_their_answer() -> None:
    tokens, targets, places = needle_rows(200, 20, 3)
    asked = tokens[:, -1] - NOISE - FACTS * VALUES
    answers = targets[:, -1]
    assert ((answers - NOISE) // VALUES == asked).all()
    assert (tokens.gather(1, places[:, None])[:, 0] == answers).all()
    assert (targets[:, :-1] == NOT_COUNTED).all()
    assert ((tokens[:, :-1] >= NOISE).sum(1) == FACTS).all()


MATRIX = {"lengths": [512], "judged": 512} | {
    name: {"loop": [1.0], "matrix": [0.05], "error": 1e-15, "faster": 20.0} for name in ("full", "causal")
}
PATH = {
    "lengths": [4, 8],
    "attention": {"operations": [5, 5], "share": [1.0, 0.9], "far": 0.9},
    "rnn": {"operations": [12, 24], "share": [0.1, 1e-9], "far": 1e-9},
}
ACCESS = {"length": 64} | {
    name: {"by_place": [0.99] * 8, "mean": 0.99, "spread": 0.0} for name in ("gpt", "lstm", "rnn")
}
SCALE = {"lengths": LENGTHS} | {
    name: {"microseconds": [1.0] * len(LENGTHS), "apart": 1.1, "states": [8]} for name in ("rnn", "lstm", "gru")
}
MARKET = {"forecaster": 4.0, "weekly": 10.0, "daily": 9.0, "optimum": 3.0}
BROKEN = [
    (MatrixForm(), MATRIX, MATRIX | {"causal": MATRIX["causal"] | {"faster": 8.0}}),
    (PathLength(), PATH, PATH | {"attention": PATH["attention"] | {"operations": [5, 6]}}),
    (RandomAccess(), ACCESS, ACCESS | {"gpt": ACCESS["gpt"] | {"spread": 0.03}}),
    (Scale(), SCALE, SCALE | {"gru": SCALE["gru"] | {"states": [8, 16]}}),
    (Electricity(), MARKET, MARKET | {"daily": 3.5}),
]


@pytest.mark.parametrize(("one", "good", "bad"), BROKEN, ids=lambda value: getattr(value, "id", ""))
def test_a_rule_holds_is_broken_or_is_not_settled(one: Any, good: Any, bad: Any) -> None:
    assert one.judge([good, good]).outcome == "holds"
    assert one.judge([bad, bad]).outcome == "does not hold"
    assert one.judge([good, bad]).outcome == "not settled"
    ElementTree.fromstring(one.figure([good, bad]))


def test_each_is_found_by_its_name() -> None:
    for one, _, _ in BROKEN:
        assert type(study(one.id)) is type(one)
        assert one.id in names()
