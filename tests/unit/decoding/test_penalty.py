from __future__ import annotations

import math

import pytest
import torch

from regard.decoding.beam import BeamResult, Hypothesis, rescored
from regard.decoding.penalty import CoveragePenalty, LengthPenalty
from regard.errors import NumericError, UsageError


def test_power_and_none_are_what_their_names_say() -> None:
    assert LengthPenalty("power", 0.7)(8) == pytest.approx(8**0.7)
    assert LengthPenalty("none", 0.7)(8) == 1.0


def test_an_unknown_penalty_names_the_nearest_and_alpha_is_checked() -> None:
    with pytest.raises(UsageError, match="did you mean 'gnmt'"):
        LengthPenalty("gmnt")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="alpha"):
        LengthPenalty("gnmt", -0.1)
    with pytest.raises(UsageError, match="alpha"):
        LengthPenalty("gnmt", math.nan)


def test_coverage_by_a_loop_over_the_sums_of_columns() -> None:
    attention = torch.rand(5, 7).softmax(-1)
    expected = 0.0
    for i in range(7):
        expected += 0.3 * math.log(min(math.fsum(float(attention[j, i]) for j in range(5)), 1))
    assert expected < 0
    assert CoveragePenalty(0.3)(attention) == pytest.approx(expected, rel=1e-12)


def test_texts_that_miss_more_of_the_source_are_worse_though_attention_is_zero() -> None:
    penalty = CoveragePenalty(0.2)
    one, two = penalty(torch.tensor([[1.0, 1.0, 0.0]])), penalty(torch.tensor([[1.0, 0.0, 0.0]]))
    assert -math.inf < two < one < -10
    assert CoveragePenalty(0.0)(torch.tensor([[1.0, 0.0]])) == 0


@pytest.mark.parametrize("beta", [-0.1, math.nan, math.inf])
def test_beta_is_checked(beta: float) -> None:
    with pytest.raises(UsageError, match="beta must be 0 or positive"):
        CoveragePenalty(beta)


def text(*tokens: int, log_prob: float) -> Hypothesis:
    share = log_prob / len(tokens)
    return Hypothesis(tokens, (share,) * len(tokens), log_prob, 1.0, log_prob, "eos")


def test_equal_scores_keep_their_order_and_the_steps_are_kept() -> None:
    first, second = text(1, 0, log_prob=-1.0), text(2, 0, log_prob=-1.0)
    beam = BeamResult((first, second), ((first,),))
    result = rescored(beam, [torch.ones(2, 3)] * 2, LengthPenalty("power", 1.0), CoveragePenalty())
    assert [h.tokens for h in result.best] == [(1, 0), (2, 0)]
    assert [(h.score, h.penalty, h.coverage) for h in result.best] == [(-0.5, 2.0, 0.0)] * 2
    assert result.steps == beam.steps


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        ([], "attention of 0 texts for a beam of 1"),
        ([torch.ones(3, 2)], r"text 0 has 2 tokens and attention of shape \(3, 2\)"),
        ([torch.ones(2)], r"text 0 has 2 tokens and attention of shape \(2,\)"),
    ],
)
def test_attention_that_is_not_of_these_texts_is_refused(attention: list[torch.Tensor], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rescored(BeamResult((text(1, 0, log_prob=-1.0),)), attention, LengthPenalty(), CoveragePenalty())


def test_attention_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(NumericError, match="attention of text 0"):
        rescored(
            BeamResult((text(1, log_prob=-1.0),)), [torch.tensor([[math.nan]])], LengthPenalty(), CoveragePenalty()
        )
