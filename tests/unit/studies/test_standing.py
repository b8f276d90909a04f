"""Intervals and rankings against numbers worked out by hand."""

from __future__ import annotations

import random

import pytest

from regard.evaluation.student import half_width
from regard.studies.scaling import power_law
from regard.studies.standing import PARTS, SEEDS, Standing, differ, first_to, ranked, sentence, standing


def test_the_interval_of_three_seeds_is_students() -> None:
    # Mean 2, deviation 1, t of two degrees of freedom 4.303: 4.303 / sqrt(3).
    one = standing("a", [1.0, 2.0, 3.0], [])
    assert (one.mean, one.low, one.high) == pytest.approx((2.0, 2 - 2.4843, 2 + 2.4843), abs=1e-3)
    assert half_width([5.0] * 4) == 0


def test_a_single_seed_takes_the_parts_of_the_test() -> None:
    one = standing("a", [2.0], [1.0, 3.0])
    assert one.mean == 2.0
    assert one.high == pytest.approx(2 + 12.7062, rel=1e-5)
    assert (one.over, one.count) == (PARTS, 2)
    assert standing("a", [2.0], []).over is None


@pytest.mark.parametrize(("seeds", "t"), [(2, 12.706), (11, 2.228), (12, 2.201), (13, 2.179), (30, 2.045), (61, 2.000)])
def test_the_interval_is_students_at_every_number_of_seeds(seeds: int, t: float) -> None:
    # Half of the scores one above and half one below their mean, and one at it where the number is odd.
    scores = [float((-1) ** place) for place in range(seeds - seeds % 2)] + [0.0] * (seeds % 2)
    deviation = ((seeds - seeds % 2) / (seeds - 1)) ** 0.5
    one = standing("a", scores, [])
    assert one.high == pytest.approx(t * deviation / seeds**0.5, rel=5e-4)


@pytest.mark.parametrize(("points", "t"), [(4, 4.303), (12, 2.228), (14, 2.179), (32, 2.042)])
def test_the_interval_of_a_power_law_is_students_at_every_number_of_points(points: int, t: float) -> None:
    import math

    rest = [0.01 * (-1) ** place for place in range(points)]
    law = power_law([(math.exp(x), math.exp(3 - 0.5 * x + off)) for x, off in enumerate(rest)])
    assert law is not None
    xs = [x - (points - 1) / 2 for x in range(points)]
    spread = sum(x * x for x in xs)
    slope = -0.5 + sum(x * off for x, off in zip(xs, rest, strict=True)) / spread
    mean = sum(rest) / points
    left = sum((off - mean - (slope + 0.5) * x) ** 2 for x, off in zip(xs, rest, strict=True))
    assert law.high == pytest.approx(-slope + t * (left / (points - 2) / spread) ** 0.5, rel=2e-4)


def test_ranks_are_by_the_mean_never_by_the_best_seed() -> None:
    lucky, steady = standing("lucky", [0.1, 5.0], []), standing("steady", [2.0, 2.1], [])
    assert [one.label for one in ranked([lucky, steady], True)] == ["steady", "lucky"]
    assert [one.label for one in ranked([lucky, steady], False)] == ["lucky", "steady"]


def seeded(label: str, mean: float, half: float) -> Standing:
    return Standing(label, mean, mean - half, mean + half, SEEDS, 3)


def test_no_winner_when_intervals_overlap() -> None:
    a, b, c = seeded("a", 1.0, 0.1), seeded("b", 1.15, 0.1), seeded("c", 2.0, 0.1)
    assert not differ(a, b)
    assert differ(a, c)
    assert "No winner" in sentence([a, b, c], {}, "1m", "loss")
    assert sentence([a, c], {}, "1m", "loss").startswith("a is best at 1m")
    assert "all within noise of a" in sentence([a, b, seeded("d", 1.0, 0.5)], {}, "1m", "loss")
    assert sentence([], {}, "1m", "loss") == "No model finished."


CLAIMS = ("best", "beyond noise", "No winner", "within noise", "winner")


def test_from_one_training_each_no_difference_is_claimed() -> None:
    """However far apart: the same model with other seeds differs by more than its test parts tell."""
    chance = random.Random(0)
    for _ in range(20):
        parts = [[chance.gauss(mean, 0.01) for _ in range(8)] for mean in (1.0, 2.0, 3.0)]
        order = ranked([standing(name, [sum(p) / 8], p) for name, p in zip("abc", parts, strict=True)], True)
        told = sentence(order, {}, "1m", "loss")
        assert told.startswith("a is ahead in one training each at 1m a model: loss 1.0"[:44])
        assert not any(claim in told for claim in CLAIMS)
        assert not any(differ(one, other) for one in order for other in order)


def test_intervals_of_different_things_are_not_compared() -> None:
    counted = Standing("ngram", 5.0, 4.99, 5.01, PARTS, 8)
    a, c = seeded("a", 1.0, 0.1), seeded("c", 2.0, 0.1)
    assert not differ(a, counted)
    told = sentence([a, c, counted], {}, "1m", "loss")
    assert told.startswith("a is best of the 2 with several seeds")
    assert "ngram (5) was trained once and not compared" in told
    ahead = sentence([Standing("ngram", 0.5, 0.49, 0.51, PARTS, 8), a, c], {}, "1m", "loss")
    assert ahead.startswith("ngram is ahead at 1m a model")
    assert "no difference is claimed" in ahead
    assert not any(claim in ahead for claim in CLAIMS)
    assert "no difference is claimed" in sentence([a, counted], {}, "1m", "loss")


def test_the_first_at_a_level() -> None:
    curves = {
        "slow": [{"seconds": 1.0, "valid_loss": 3.0}, {"seconds": 9.0, "valid_loss": 1.0}],
        "fast": [{"seconds": 2.0, "valid_loss": 1.5}],
        "never": [{"seconds": 1.0, "valid_loss": 4.0}],
    }
    assert first_to(curves, 2.0) == ("fast", 2.0)
    assert first_to(curves, 0.5) is None


def test_the_information_floor_is_that_of_the_words_that_are_asked_for() -> None:
    from regard.data.worlds import from_spec
    from regard.studies.measure import recall_bits

    assert recall_bits(from_spec("world:selective_copy?valid=20&words=8&kinds=8&length=24", 0)) == pytest.approx(24)
    assert recall_bits(from_spec("world:selective_copy?valid=20&words=3&kinds=4&length=24", 0)) == pytest.approx(6)
    for world in ("parity", "majority", "ab", "memorisation"):
        assert recall_bits(from_spec(f"world:{world}?valid=10", 0)) is None, world
    assert recall_bits(from_spec("world:recall?valid=40", 0)) < 15
    one, three = (recall_bits(from_spec(f"world:stories?facts={facts}&valid=40", 0)) for facts in (1, 3))
    assert one is not None
    assert three is not None
    assert 3 < one < three < 25
