"""Holding out examples: duplicates stay together, whatever the rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.split import split_examples
from regard.errors import DataError, UsageError


def first(text: str) -> str:
    return text[0]


@given(
    texts=st.lists(st.text("abcd", min_size=1, max_size=3), min_size=2, max_size=40),
    valid=st.sampled_from(["hash:0.1", "hash:0.6", "tail:0.1", "tail:0.9"]),
)
def test_both_sides_hold_something_nothing_is_lost_and_keys_are_not_shared(texts, valid):
    if len(set(map(first, texts))) < 2:
        with pytest.raises(DataError, match="all the same"):
            split_examples(texts, valid, map(first, texts))
        return
    train, held = split_examples(texts, valid, map(first, texts))
    assert train
    assert held
    assert sorted(train + held) == sorted(texts)
    assert not set(map(first, train)) & set(map(first, held))


def test_the_tail_is_the_last_part_in_its_order():
    texts = [str(number) for number in range(100, 200)]
    assert split_examples(texts, "tail:0.1", texts) == (texts[:90], texts[90:])
    assert split_examples([*texts, "100"], "tail:0.1", [*texts, "100"]) == ([*texts[:90], "100"], texts[90:])


def test_a_hash_holds_out_about_its_fraction_and_keeps_sides_when_others_come():
    texts = [str(number) for number in range(4000)]
    train, held = split_examples(texts, "hash:0.1", texts)
    # 400 expected, standard deviation 19.
    assert 300 < len(held) < 500
    more = [*texts, *(f"new {number}" for number in range(500))]
    again = split_examples(more, "hash:0.1", more)
    assert set(held) <= set(again[1])
    assert set(train) <= set(again[0])


def test_a_path_is_no_rule():
    with pytest.raises(UsageError, match=r"'valid.tsv' is no rule"):
        split_examples(["a", "b"], "valid.tsv", ["a", "b"])
    with pytest.raises(DataError, match="0 examples, all the same"):
        split_examples([], "hash:0.1", [])
