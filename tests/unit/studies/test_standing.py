"""Laws, levels and floors against numbers worked out by hand; what is said of models is in test_verdict."""

from __future__ import annotations

import pytest

from regard.studies.scaling import power_law
from regard.studies.standing import first_to


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
