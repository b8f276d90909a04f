"""What can be asked of a look, and what is refused in one line, whoever asks."""

from __future__ import annotations

from typing import Any

import pytest

from regard.errors import UsageError
from regard.explain.look import options_from, place_of
from regard.tasks.reading import START, Side


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"seed": 99999999999999999999999}, r"seed: expected 2\^63 - 1 at most"),
        ({"seed": -1}, "seed: expected 0 or more, found -1"),
        ({"reduce": -3}, "reduce: expected 0 or more, found -3"),
        ({"layer": 0}, "layer: expected 1 or more, found 0"),
        ({"head": 0}, "head: expected 1 or more, found 0"),
        ({"position": -1}, "position: expected 0 or more, found -1"),
        ({"temperature": -0.5}, "temperature must be 0"),
        ({"temperature": float("nan")}, "temperature must be 0"),
        ({"temperature": 10**400}, r"temperature: expected 2\^63 - 1 at most"),
        ({"top_p": 1.5}, r"top_p must lie in \(0, 1\]"),
        ({"top_p": -0.1}, r"top_p must lie in \(0, 1\]"),
        ({"top_k": 0}, "top_k must be a whole number of at least 1"),
    ],
)
def test_an_option_out_of_range_is_refused(option: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        options_from(option)


def test_the_ends_of_the_ranges_are_taken():
    given = {"seed": 2**63 - 1, "reduce": 0, "layer": 1, "head": 1, "position": 0, "temperature": 0.0, "top_k": 1}
    assert vars(options_from(given)).items() >= given.items()
    assert options_from({"layer": None, "head": None, "position": None}).layer is None


@pytest.mark.parametrize(
    ("labels", "known"),
    [((START, "a", "b"), "1 to 2, and 0, its start"), ((START,), "0, its start"), (("a", "b", "c"), "1 to 3")],
)
def test_a_position_beyond_the_text_is_told_with_those_that_there_are(labels: tuple[str, ...], known: str):
    with pytest.raises(UsageError, match=f"position 9: the text has positions {known}$"):
        place_of(Side("text", labels), 9)
