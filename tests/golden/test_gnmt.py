"""Length normalisation and coverage of GNMT (Wu et al. 2016, equation 14): lp, cp, and which text they let win."""

from __future__ import annotations

from typing import Any

import pytest
from exact import load, same, tensor

from regard.decoding.beam import BeamResult, Hypothesis, rescored
from regard.decoding.penalty import NO_PENALTY, CoveragePenalty, LengthPenalty

GOLDEN = load("gnmt")
COVERAGE, SCORE = GOLDEN["numeric_cp"], GOLDEN["numeric_score"]


def hypothesis(log_p: float, length: int) -> Hypothesis:
    return Hypothesis((1,) * length, (log_p / length,) * length, log_p, 1.0, log_p, "eos")


@pytest.mark.parametrize("case", GOLDEN["numeric_lp"], ids=lambda case: f"{case['len']}-{case['alpha']}")
def test_length_penalty(case: dict[str, float]) -> None:
    assert LengthPenalty("gnmt", case["alpha"])(int(case["len"])) == pytest.approx(case["lp"], rel=1e-14)


@pytest.mark.parametrize("case", ["good_alignment", "bad_alignment"])
def test_coverage_penalty(case: str) -> None:
    golden = COVERAGE[case]
    attention = tensor(golden["attention_target_by_source"])
    same(attention.sum(0), golden["source_mass"])
    assert CoveragePenalty(golden["beta"])(attention) == pytest.approx(golden["cp"], abs=1e-14)


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
def test_scores_of_a_short_and_a_long_text(alpha: float) -> None:
    cases: list[dict[str, Any]] = list(GOLDEN["numeric_length"].values())
    beam = BeamResult(tuple(hypothesis(case["log_p"], case["len"]) for case in cases))
    flat = [tensor([[1.0]] * case["len"]) for case in cases]
    result = rescored(beam, flat, LengthPenalty("gnmt", alpha), CoveragePenalty())
    expected = sorted((case[f"score_alpha_{alpha:g}"] for case in cases), reverse=True)
    assert [text.score for text in result.best] == pytest.approx(expected, rel=1e-14)


def test_coverage_turns_the_ranking_round() -> None:
    cases = {name: SCORE[name] for name in ("hyp_1", "hyp_2")}
    by_name = {name: hypothesis(case["log_p"], case["len"]) for name, case in cases.items()}
    attention = {
        name: tensor(COVERAGE[case["alignment"]]["attention_target_by_source"]) for name, case in cases.items()
    }
    first, second = SCORE["winner_by_log_p"], SCORE["winner_by_score"]
    beam = BeamResult((by_name[first], by_name[second]))
    penalty = LengthPenalty("gnmt", GOLDEN["decoding"]["alpha"])
    result = rescored(beam, [attention[first], attention[second]], penalty, CoveragePenalty(GOLDEN["decoding"]["beta"]))
    for text, name in zip(result.best, (second, first), strict=True):
        assert text.log_prob == cases[name]["log_p"]
        assert text.score == pytest.approx(cases[name]["score"], rel=1e-14)
        assert text.coverage == pytest.approx(COVERAGE[cases[name]["alignment"]]["cp"], abs=1e-14)
        assert text.score == text.log_prob / text.penalty + text.coverage
    unchanged = rescored(beam, [attention[first], attention[second]], NO_PENALTY, CoveragePenalty(0.0))
    assert unchanged == beam
