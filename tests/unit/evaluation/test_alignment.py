from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DataError
from regard.evaluation.translation import alignment_accuracy, alignment_error_rate, most_attended

LINKS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8)


def test_error_rate_by_hand() -> None:
    sure, possible = [{(0, 0), (1, 1)}], [{(0, 0), (1, 1), (1, 2), (2, 2)}]
    assert alignment_error_rate([{(0, 0), (1, 1)}], sure, possible) == 0
    # A possible link costs nothing, though it is not sure: 1 - (2 + 3) / (3 + 2).
    assert alignment_error_rate([{(0, 0), (1, 1), (2, 2)}], sure, possible) == 0
    # One sure, one possible, two wrong: 1 - (1 + 2) / (4 + 2).
    assert alignment_error_rate([{(0, 0), (1, 2), (3, 0), (3, 1)}], sure, possible) == 0.5
    assert alignment_error_rate([{(3, 3)}], sure, possible) == 1
    assert alignment_error_rate([set()], sure, possible) == 1


def test_counts_are_summed_over_sentences_and_rates_are_not_averaged() -> None:
    found, sure = [{(0, 0)}, set()], [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    assert alignment_error_rate(found, sure) == pytest.approx(1 - (1 + 1) / (1 + 4))


@given(LINKS, LINKS)
def test_with_sure_links_alone_it_is_one_less_f1(found: set, sure: set) -> None:
    if not found | sure:
        return
    hits = len(found & sure)
    precision, recall = hits / len(found) if found else 0, hits / len(sure) if sure else 0
    f1 = 2 * precision * recall / (precision + recall) if hits else 0
    assert alignment_error_rate([found], [sure]) == pytest.approx(1 - f1)


@given(LINKS, LINKS, LINKS)
def test_every_sure_link_is_possible_whether_listed_or_not(found: set, sure: set, possible: set) -> None:
    if not found | sure:
        return
    given_apart = alignment_error_rate([found], [sure], [possible - sure])
    assert given_apart == alignment_error_rate([found], [sure], [possible | sure])
    assert 0 <= given_apart <= 1


def test_accuracy_is_over_target_words_that_have_a_link() -> None:
    attention = [np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.7, 0.1], [0.9, 0.0, 0.1]])]
    assert alignment_accuracy(attention, [((0, 0), (1, 1), (1, 2), (0, 2))]) == pytest.approx(2 / 3)
    two = [*attention, np.array([[0.1, 0.9]])]
    assert alignment_accuracy(two, [((0, 0), (1, 1), (1, 2), (0, 2)), ((1, 0),)]) == pytest.approx(3 / 4)


def test_attention_read_as_links_gives_an_error_rate_too() -> None:
    weights = np.random.default_rng(0).random((5, 7))
    links = most_attended(weights)
    assert links == {(max(range(7), key=lambda source: weights[target, source]), target) for target in range(5)}
    assert alignment_error_rate([links], [links]) == 0
    assert alignment_accuracy([weights], [links]) == 1


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(DataError, match="links of 1 sentences against gold of 2 and 2"):
        alignment_error_rate([set()], [set(), set()])
    with pytest.raises(DataError, match="no link to score"):
        alignment_error_rate([set()], [set()])
    with pytest.raises(DataError, match="attention of 0 sentences against gold of 1"):
        alignment_accuracy([], [{(0, 0)}])
    with pytest.raises(DataError, match="no link to score"):
        alignment_accuracy([np.ones((2, 2))], [()])
    with pytest.raises(DataError, match="a row of source weights"):
        most_attended(np.ones(3))
