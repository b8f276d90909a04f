"""Buckets: which samples come together is a pure function of the step, and leaves little padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.bucket import FEWEST, MOST, Buckets, pool_size
from regard.data.ragged import ragged
from regard.data.rows import LabelRows, PairRows, Shuffled, TagRows

GENERATOR = np.random.default_rng(0)


def sentences(count: int, mean: float, spread: float) -> np.ndarray:
    """Lengths as those of sentences: many of about `mean`, few much longer."""
    return np.maximum(1, np.exp(GENERATOR.normal(np.log(mean), spread, count))).astype(int)


@given(
    count=st.integers(1, 200),
    sides=st.integers(1, 2),
    batch_size=st.integers(1, 5),
    evenly=st.booleans(),
    seed=st.integers(0, 99),
    steps=st.permutations([0, 1, 31, 32, 33, 64, 1000]),
)
@settings(max_examples=40, deadline=None)
def test_a_batch_is_the_same_whenever_it_is_asked_for(count, sides, batch_size, evenly, seed, steps):
    sizes = (np.arange(count * sides) * 7 % 11).reshape(count, sides)
    asked = Buckets(sizes, seed, evenly=evenly)
    for step in steps:
        samples, numbers = asked.batch(step, batch_size)
        again, same = Buckets(sizes, seed, evenly=evenly).batch(step, batch_size)
        assert samples.tolist() == again.tolist()
        assert numbers.tolist() == same.tolist()
        assert len(samples) == batch_size


@given(count=st.integers(1, 300), sides=st.integers(1, 2), batch_size=st.integers(1, 4), evenly=st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_pool_holds_each_of_its_samples_once(count, sides, batch_size, evenly):
    sizes = (np.arange(count * sides) * 7 % 11).reshape(count, sides)
    buckets, n_batches = Buckets(sizes, 3, evenly=evenly), pool_size(count, batch_size)
    assert FEWEST <= n_batches <= MOST
    for pool in (0, 2):
        steps = range(pool * n_batches, (pool + 1) * n_batches)
        numbers = np.concatenate([buckets.batch(step, batch_size)[1] for step in steps])
        first = pool * n_batches * batch_size
        assert sorted(numbers.tolist()) == list(range(first, first + n_batches * batch_size))


def text(sizes: np.ndarray):
    return ragged([np.zeros(size, int) for size in sizes])


def labels():
    sizes = sentences(3000, 20, 0.6)
    return LabelRows(text(sizes), np.zeros(len(sizes), int))


def tags():
    # As the sentences of a treebank: a third of them a few words, some very long.
    sizes = np.concatenate([sentences(2000, 5, 0.6), sentences(4000, 18, 0.7)])
    return TagRows(text(sizes), text(sizes))


def pairs():
    source = sentences(16000, 13, 0.3)
    target = np.maximum(1, source + GENERATOR.normal(0, 2.5, len(source)).round()).astype(int)
    return PairRows(text(source), text(target), 0)


@pytest.mark.parametrize("rows", [labels, tags, pairs])
def test_less_than_a_twentieth_of_a_batch_is_padding(rows):
    sampler = Shuffled(rows(), seed=0)
    batches = [sampler.batch(step, 32) for step in range(sampler.samples_per_epoch // 32)]
    assert sum(batch.n_padding for batch in batches) / sum(batch.n_places for batch in batches) < 0.05


def test_batches_that_are_dealt_out_evenly_hold_about_as_many_tokens():
    sizes = np.minimum(128, sentences(5000, 40, 0.9))
    for evenly, most in ((True, 1.1), (False, 1000)):
        buckets = Buckets(sizes, 0, evenly=evenly)
        tokens = [int(sizes[buckets.batch(step, 32)[0]].sum()) for step in range(pool_size(5000, 32))]
        assert max(tokens) / min(tokens) < most
    assert max(tokens) / min(tokens) > 10, "those of similar length do not"
