"""Verdicts: what may be said of models that were scored on the same examples, and how often it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from regard.evaluation.each import EachScore
from regard.evaluation.student import t_quantile
from regard.studies.standing import ranks, sentence
from regard.studies.verdict import Contestant, Verdict, holm, judged

EXAMPLES = 80
CLAIMS = ("best", "beyond noise", "No winner", "within noise", "winner")


def model(
    label: str, mean: float, chance: np.random.Generator, seeds: int = 3, spread: float = 0.01, examples: int = EXAMPLES
) -> Contestant:
    """A model whose examples are alike for all of the same generator's first draw, and whose trainings differ."""
    shared = np.random.default_rng(7).normal(0, 0.5, examples)
    trained = [
        EachScore.mean_of(mean + shared + chance.normal(0, spread) + chance.normal(0, 0.05, examples))
        for _ in range(seeds)
    ]
    return Contestant(label, trained)


def told(verdict: Verdict) -> str:
    return sentence(verdict, {}, "1m", "loss", "text")


def test_ranks_are_by_the_mean_never_by_the_best_seed() -> None:
    lucky = Contestant("lucky", [EachScore.mean_of([0.1, 0.1]), EachScore.mean_of([5.0, 5.0])])
    steady = Contestant("steady", [EachScore.mean_of([2.0, 2.0]), EachScore.mean_of([2.1, 2.1])])
    assert [one.label for one in judged([lucky, steady], True).order] == ["steady", "lucky"]
    assert [one.label for one in judged([lucky, steady], False).order] == ["lucky", "steady"]


def test_a_difference_beyond_both_chances_is_a_winner_and_one_within_is_none() -> None:
    chance = np.random.default_rng(0)
    far = judged([model("a", 1.0, chance), model("b", 1.3, chance), model("c", 2.0, chance)], True)
    assert (far.winner, far.ties) == ("a", ())
    assert told(far).startswith("a is best at 1m a model: loss 0.9")
    assert "beyond noise of b" in told(far)
    near = judged([model("a", 1.0, chance), model("b", 1.0, chance), model("c", 2.0, chance)], True)
    assert near.winner is None
    assert len(near.ties) == 1
    assert told(near).startswith("No winner at 1m a model")
    same = judged([model(name, 1.0, chance) for name in "abc"], True)
    assert "are all within noise of" in told(same)


def test_examples_are_paired_what_is_hard_for_all_is_no_noise_of_the_difference() -> None:
    """A tenth of the deviation between examples is told apart, because the models meet the same ones."""
    chance = np.random.default_rng(1)
    models = [model("a", 1.0, chance, spread=0.001), model("b", 1.05, chance, spread=0.001)]
    assert judged(models, True).winner == "a"
    first, second = judged(models, True).order
    assert second.ends[0] < first.mean < second.mean < first.ends[1]


@pytest.mark.parametrize("seeds", [1, 2])
def test_of_fewer_than_three_trainings_nothing_is_claimed_however_far_apart(seeds: int) -> None:
    chance = np.random.default_rng(2)
    found = judged([model("a", 1.0, chance, seeds), model("b", 9.0, chance, seeds)], True)
    assert (found.winner, found.p) == (None, ())
    words = {1: "one training each", 2: "two trainings each"}[seeds]
    assert told(found).startswith(f"a is ahead on this text, {words}, at 1m a model: loss 0.9")
    assert "--seeds 3 tells" in told(found)
    assert not any(claim in told(found) for claim in CLAIMS)


def test_a_model_that_is_fitted_at_once_has_no_chance_of_training_and_is_compared() -> None:
    chance = np.random.default_rng(3)
    counted = Contestant("ngram", model("ngram", 0.5, chance, seeds=1).trainings, fitted=True)
    assert judged([counted, model("a", 1.0, chance)], True).winner == "ngram"
    assert judged([counted, model("a", 1.0, chance, seeds=1)], True).winner is None
    other = Contestant("majority", model("majority", 0.9, chance, seeds=1).trainings, fitted=True)
    assert judged([counted, other], True).winner == "ngram"


def test_from_a_single_score_nothing_is_claimed() -> None:
    one = [Contestant(name, [EachScore.mean_of([score])] * 3) for name, score in (("a", 1.0), ("b", 2.0))]
    found = judged(one, True)
    assert (found.winner, found.order[0].low) == (None, None)
    assert "no difference is claimed" in told(found)
    assert told(judged([], True)) == "No model finished."


def test_the_interval_of_trainings_that_differ_alone_is_students() -> None:
    scores = [1.0, 2.0, 3.0]
    each = [EachScore.mean_of(np.full(EXAMPLES, score)) for score in scores]
    (one,) = judged([Contestant("a", each)], True).order
    # Mean 2, deviation 1, two degrees of freedom: 4.303 / sqrt(3), within the chance of the draws.
    assert one.high == pytest.approx(2 + t_quantile(2) / 3**0.5, rel=0.05)


def test_the_interval_of_examples_alone_is_that_of_their_mean() -> None:
    values = np.random.default_rng(4).normal(5, 2, 50)
    (one,) = judged([Contestant("a", [EachScore.mean_of(values)])], True).order
    half = t_quantile(49) * values.std(ddof=1) / 50**0.5
    assert one.high == pytest.approx(values.mean() + half, rel=0.02)
    assert judged([Contestant("a", [EachScore.mean_of(values)])], True).order[0] == one


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_a_score_that_is_the_same_on_every_example_has_no_interval(lower_is_better: bool) -> None:
    """A sum of thirds is rounded otherwise in every draw: that is no chance of the test."""
    each = EachScore.mean_of(np.full(333, 1 / 3))
    (one,) = judged([Contestant("a", [each])], lower_is_better).order
    assert (one.low, one.high) == (None, None)


def test_a_share_of_rights_has_the_interval_of_wilson() -> None:
    """By hand: of 19 of 19 the low end is 1 / (1 + 1.96^2 / 19)."""
    (perfect,) = judged([Contestant("a", [EachScore.mean_of(np.ones(19))])], False).order
    assert perfect.ends == (pytest.approx(1 / (1 + 1.959964**2 / 19)), 1.0)
    (half,) = judged([Contestant("a", [EachScore.mean_of([0.0, 1.0])])], False).order
    assert 0 < half.ends[0] < 0.1
    assert 0.9 < half.ends[1] < 1
    some = EachScore.mean_of(np.arange(1000) % 10 < 7)
    (many,) = judged([Contestant("a", [some])], False).order
    error = 1.96 * (0.7 * 0.3 / 1000) ** 0.5
    assert many.ends == (pytest.approx(0.7 - error, abs=0.003), pytest.approx(0.7 + error, abs=0.003))


def test_an_interval_of_sentences_is_wider_than_that_of_as_many_words_apart() -> None:
    """All of the words of a sentence are right together: there are as many answers as sentences."""
    right = np.arange(60) % 3 > 0
    (one,) = judged([Contestant("a", [EachScore(10.0 * right, np.full(60, 10.0))])], False).order
    (apart,) = judged([Contestant("a", [EachScore.mean_of(right)])], False).order
    assert one.ends == (pytest.approx(apart.ends[0], abs=0.01), pytest.approx(apart.ends[1], abs=0.01))


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_of_few_answers_at_random_a_winner_is_named_at_most_one_time_in_twenty(count: int, share: float) -> None:
    chance = np.random.default_rng(count)
    found = []
    for _ in range(400):
        models = [EachScore.mean_of(chance.random(count) < share) for _ in range(2)]
        found.append(judged([Contestant(name, [one], True) for name, one in zip("ab", models, strict=True)], False))
    assert sum(one.winner is not None for one in found) <= 20
    if count < 6:
        assert all(one.winner is None for one in found)


def test_two_examples_that_come_out_alike_are_no_proof_and_many_are() -> None:
    def verdict(count: int) -> Verdict:
        right, wrong = (EachScore.mean_of(np.full(count, score)) for score in (1.0, 0.0))
        return judged([Contestant("linear", [right], True), Contestant("majority", [wrong], True)], False)

    assert (verdict(2).winner, verdict(2).p) == (None, (("majority", 0.5),))
    assert verdict(5).winner is None
    assert (verdict(6).winner, verdict(6).p) == ("linear", (("majority", 2 / 64),))
    assert dict(verdict(100).p)["majority"] < 1e-20


@pytest.mark.parametrize("fitted", [True, False])
def test_an_exact_tie_is_told_as_one_and_not_as_a_lead(fitted: bool) -> None:
    """Each is right on 13 of 19 examples, not the same ones, and a third model on 8 of them."""
    first, others = np.arange(19) < 13, np.arange(19) >= 6
    models = [("naive_bayes", first), ("dan", others), ("majority", np.arange(19) < 8)]
    found = judged([Contestant(name, [EachScore.mean_of(right)], fitted) for name, right in models], False)
    assert ranks(found.order) == [1, 1, 3]
    words = sentence(found, {}, "1m", "accuracy", "test")
    if fitted:
        near = ", and majority is within noise of them"
        assert words == f"No winner at 1m a model: naive_bayes and dan are level at accuracy 0.6842{near}."
    else:
        assert words.startswith("naive_bayes and dan are level on this test, one training each, at 1m a model")
        assert "accuracy 0.6842, then majority with 0.4211;" in words
    assert not any(word in words for word in ("ahead", "leads"))


def test_holm_corrects_for_the_number_of_comparisons() -> None:
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("models", "spread"), [(2, 0.02), (2, 0.2), (4, 0.05)])
def test_of_models_that_are_the_same_a_winner_is_named_at_most_one_time_in_twenty(models: int, spread: float) -> None:
    chance = np.random.default_rng(5)
    found = [judged([model(str(n), 1.0, chance, spread=spread) for n in range(models)], True) for _ in range(200)]
    # Of 200 at 5% more than 18 are met once in a hundred times.
    assert sum(one.winner is not None for one in found) <= 18
    assert sum(len(one.ties) < models - 1 for one in found) <= 18


def test_a_true_difference_of_five_deviations_is_found_more_often_than_not() -> None:
    chance = np.random.default_rng(6)
    found = [judged([model("a", 1.0, chance), model("b", 1.05, chance)], True).winner for _ in range(60)]
    assert found.count("a") > 30
    assert found.count("b") == 0
