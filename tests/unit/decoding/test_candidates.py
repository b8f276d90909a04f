"""The best continuations of every beam against sorting all of them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.candidates import BLOCK, best_offers

INF = math.inf


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from([1, 3, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 7]),
    st.integers(1, 9),
    st.integers(0, 2**32),
)
def test_equal_sorting_every_continuation_also_where_many_are_equal(
    sizes: list[int], vocab_size: int, count: int, seed: int
) -> None:
    chance = torch.Generator().manual_seed(seed)
    # Few different numbers, so that ties are common.
    log_probs = -torch.randint(0, 6, (sum(sizes), vocab_size), generator=chance).float()
    log_probs[torch.rand(log_probs.shape, generator=chance) < 0.3] = -INF
    totals = [[-float(torch.randint(0, 4, (), generator=chance)) for _ in range(size)] for size in sizes]
    standing = iter(torch.randperm(len(log_probs), generator=chance).tolist())
    rows = [[next(standing) for _ in range(size)] for size in sizes]
    found = best_offers(log_probs, rows, totals, count)
    for row, beam, offers in zip(rows, totals, found, strict=True):
        every = [
            (total + float(log_probs[row[parent], token]), parent, token, float(log_probs[row[parent], token]))
            for parent, total in enumerate(beam)
            for token in range(vocab_size)
            if log_probs[row[parent], token] > -INF
        ]
        every.sort(key=lambda offer: (-offer[0], offer[1], offer[2]))
        assert [tuple(offer) for offer in offers] == every[:count]


def test_totals_are_summed_in_float64() -> None:
    """In float32 both would be -1e8, and the lower token would come first."""
    [[best]] = best_offers(torch.tensor([[-2.0, -1.0]]), [[0]], [[-1e8]], 1)
    assert best == (-1e8 - 1.0, 0, 1, -1.0)


@pytest.mark.parametrize("count", [1, 5])
def test_a_beam_without_any_possible_continuation_has_no_offers(count: int) -> None:
    log_probs = torch.full((3, 2 * BLOCK), -INF)
    log_probs[0, 5] = 0.0
    found = best_offers(log_probs, [[0], [1, 2]], [[0.0], [0.0, -1.0]], count)
    assert [[offer.token for offer in offers] for offers in found] == [[5], []]
