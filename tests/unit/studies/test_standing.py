"""Intervals and rankings against numbers worked out by hand."""

from __future__ import annotations

import pytest

from regard.studies.standing import Standing, first_to, half_width, overlap, ranked, sentence, standing


def test_the_interval_of_three_seeds_is_students() -> None:
    # Mean 2, deviation 1, t of two degrees of freedom 4.303: 4.303 / sqrt(3).
    one = standing("a", [1.0, 2.0, 3.0], [])
    assert (one.mean, one.low, one.high) == pytest.approx((2.0, 2 - 2.4843, 2 + 2.4843), abs=1e-3)
    assert half_width([5.0] * 4) == 0


def test_a_single_seed_takes_the_parts_of_the_test() -> None:
    one = standing("a", [2.0], [1.0, 3.0])
    assert one.mean == 2.0
    assert one.high == pytest.approx(2 + 12.71)
    assert not standing("a", [2.0], []).known


def test_ranks_are_by_the_mean_never_by_the_best_seed() -> None:
    lucky, steady = standing("lucky", [0.1, 5.0], []), standing("steady", [2.0, 2.1], [])
    assert [one.label for one in ranked([lucky, steady], True)] == ["steady", "lucky"]
    assert [one.label for one in ranked([lucky, steady], False)] == ["lucky", "steady"]


def test_no_winner_when_intervals_overlap() -> None:
    a, b, c = Standing("a", 1.0, 0.9, 1.1), Standing("b", 1.15, 1.05, 1.25), Standing("c", 2.0, 1.9, 2.1)
    assert overlap(a, b)
    assert not overlap(a, c)
    assert "No winner" in sentence([a, b, c], {}, "1m", "loss")
    assert sentence([a, c], {}, "1m", "loss").startswith("a is best at 1m")
    assert "every other model" in sentence([a, b, Standing("d", 1.0, 0.5, 1.5)], {}, "1m", "loss")
    assert sentence([], {}, "1m", "loss") == "No model finished."


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
    from regard.studies.floor import recall_bits

    assert recall_bits(from_spec("world:selective_copy?valid=20&words=8&kinds=8&length=24", 0)) == pytest.approx(24)
    assert recall_bits(from_spec("world:selective_copy?valid=20&words=3&kinds=4&length=24", 0)) == pytest.approx(6)
    for world in ("parity", "majority", "ab", "memorisation"):
        assert recall_bits(from_spec(f"world:{world}?valid=10", 0)) is None, world
    assert recall_bits(from_spec("world:recall?valid=40", 0)) < 15
    one, three = (recall_bits(from_spec(f"world:stories?facts={facts}&valid=40", 0)) for facts in (1, 3))
    assert one is not None
    assert three is not None
    assert 3 < one < three < 25
