"""Batches that are made ahead are those that are made when asked for."""

from __future__ import annotations

import threading

import pytest
import torch

from regard.training.prefetch import Prefetch
from tiny_run import Steps

CPU = torch.device("cpu")


def prefetch(sampler, ahead, accumulate=1):
    made = Prefetch(sampler, 4, accumulate, CPU)
    made.ahead = ahead  # as on a GPU
    return made


def same(one, other):
    assert one.tokens == other.tokens
    assert one.samples == other.samples
    for a, b in zip(one.batches, other.batches, strict=True):
        assert torch.equal(a.tokens, b.tokens)
        assert torch.equal(a.targets, b.targets)
        assert a.fresh == b.fresh


@pytest.mark.parametrize("accumulate", [1, 3])
def test_in_whatever_order_steps_are_asked_for_each_has_its_own_batches(accumulate):
    made, ahead = prefetch(Steps(), 0, accumulate), prefetch(Steps(), 2, accumulate)
    try:
        for step in (0, 1, 2, 3, 9, 10, 4, 5):
            same(ahead.take(step), made.take(step))
            assert len(ahead.coming) == 2, "what nobody will ask for is let go"
    finally:
        ahead.close()


def test_batches_are_made_before_they_are_asked_for():
    asked = threading.Event()

    class Watched(Steps):
        def batch(self, step, batch_size):
            if step == 2:
                asked.set()
            return super().batch(step, batch_size)

    ahead = prefetch(Watched(), 2)
    try:
        ahead.take(0)
        assert asked.wait(10)
    finally:
        ahead.close()


def test_an_error_comes_when_its_step_does_and_the_thread_ends():
    class Broken(Steps):
        def batch(self, step, batch_size):
            if step == 2:
                raise OSError("the disk is gone")
            return super().batch(step, batch_size)

    before = set(threading.enumerate())
    ahead = prefetch(Broken(), 2)
    same(ahead.take(0), prefetch(Steps(), 0).take(0))
    same(ahead.take(1), prefetch(Steps(), 0).take(1))
    with pytest.raises(OSError, match="the disk is gone"):
        ahead.take(2)
    ahead.close()
    ahead.close()
    assert set(threading.enumerate()) <= before


def test_after_a_rest_the_thread_does_nothing():
    ahead = prefetch(Steps(), 2)
    try:
        ahead.take(0)
        ahead.rest()
        assert all(future.done() for future in ahead.coming.values())
    finally:
        ahead.close()
