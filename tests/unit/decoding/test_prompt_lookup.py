from __future__ import annotations

import random

import pytest

from regard.decoding.prompt_lookup import PromptLookup


def longest(text: list[int], count: int) -> list[int]:
    """The same by trying every end."""
    for size in range(len(text) - 1, 1, -1):
        for start in range(len(text) - size - 1, -1, -1):
            if text[start : start + size] == text[-size:]:
                found, grown = start + size, list(text)
                for i in range(count):
                    grown.append(grown[found + i])
                return grown[len(text) :]
    return []


@pytest.mark.parametrize("seed", range(5))
def test_what_followed_the_longest_end_seen_before_is_proposed(seed: int) -> None:
    chance = random.Random(seed)
    text = [chance.randrange(3) for _ in range(60)]
    lookup = PromptLookup()
    for end in range(1, len(text)):
        assert lookup.following(text[:end], 4) == longest(text[:end], 4)


def test_a_rhythm_is_kept_up_beyond_the_end_of_the_text() -> None:
    assert PromptLookup().following([7, 1, 2, 1, 2], 5) == [1, 2, 1, 2, 1]


def test_an_end_of_one_token_is_too_short() -> None:
    assert PromptLookup().following([1, 2, 3, 1], 4) == []
    assert PromptLookup().following([1], 4) == []
