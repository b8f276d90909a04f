"""The order of samples is a permutation and a pure function of (seed, epoch, index)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.order import drawn, mixed, permutation, permuted


@given(n=st.integers(1, 3000), seed=st.integers(-(2**70), 2**70), epoch=st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_every_index_is_visited_exactly_once(n, seed, epoch):
    order = permutation(seed, epoch, n)(np.arange(n))
    assert np.array_equal(np.sort(order), np.arange(n))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097])
def test_sizes_around_powers_of_two_are_bijections(n):
    for key in range(20):
        assert len(set(permuted(np.arange(n), n, key).tolist())) == n


@given(n=st.integers(1, 2**62), seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=100, deadline=None)
def test_one_index_of_a_huge_range_equals_its_place_in_an_array(n, seed, data):
    index = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5))
    order = permutation(seed, 3, n)
    together = order(np.array(index))
    assert [int(order(i)) for i in index] == together.tolist()
    assert ((together >= 0) & (together < n)).all()
    assert len(set(together.tolist())) == len(set(index))


def test_seeds_and_epochs_give_different_orders():
    orders = {tuple(permutation(seed, epoch, 100)(np.arange(100))) for seed in range(10) for epoch in range(10)}
    assert len(orders) == 100


def test_all_orders_of_three_come_about_equally_often():
    counts = Counter(tuple(permutation(seed, 0, 3)(np.arange(3))) for seed in range(3000))
    assert len(counts) == 6
    # 500 expected, standard deviation 20.
    assert all(400 < count < 600 for count in counts.values()), counts


def test_a_sample_lands_evenly_over_the_places_of_an_epoch():
    places = np.array([int(permutation(seed, 0, 10)(4)) for seed in range(2000)])
    counts = np.bincount(places, minlength=10)
    assert counts.min() > 140, counts
    assert counts.max() < 260, counts


def test_neighbours_are_scattered():
    order = permutation(1, 0, 100_000)(np.arange(100_000))
    steps = np.abs(np.diff(order))
    # Two random places of a line of length 1 lie 1/3 apart on average.
    assert abs(steps.mean() / 100_000 - 1 / 3) < 0.01


def test_an_index_outside_is_refused():
    for index in (-1, 10):
        with pytest.raises(IndexError, match=r"0 \.\. 9"):
            permuted(index, 10, 0)


def test_hash_depends_on_every_number_and_their_order():
    assert len({mixed(), mixed(0), mixed(0, 0), mixed(1, 0), mixed(0, 1), mixed(-1)}) == 6
    assert all(0 <= mixed(i) < 2**64 for i in range(100))


@given(
    n=st.integers(1, 10_000),
    seed=st.integers(0, 1000),
    numbers=st.lists(st.integers(0, 50_000), min_size=1, max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_global_numbers_run_through_one_epoch_after_the_other(n, seed, numbers):
    samples = drawn(np.array(numbers), n, seed)
    assert samples.tolist() == [int(permutation(seed, number // n, n)(number % n)) for number in numbers]
