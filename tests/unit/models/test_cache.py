"""The cache: what it counts, and in pieces the same."""

from __future__ import annotations

import pytest
import torch

from regard.errors import UsageError
from regard.models.cache import Cache, CacheConfig

VOCABULARY = 11


def test_a_cache_counts_its_window_with_decay():
    """Window of 3 after 4 1 2 1: 1 now and two ago, 2 one ago. Masses 1 + 1/4 and 1/2 of 7/4, prior 1 over 5 tokens."""
    p = Cache(CacheConfig(5, window=3, decay=0.5, prior=1.0)).double()(torch.tensor([[4, 1, 2, 1]]))[0].exp()[0, -1]
    expected = torch.tensor([0.2, 1.25 + 0.2, 0.5 + 0.2, 0.2, 0.2], dtype=torch.float64) / 2.75
    torch.testing.assert_close(p, expected, rtol=0, atol=1e-12)
    plain = Cache(CacheConfig(5, window=3)).double()(torch.tensor([[4, 1, 2, 1]]))[0].exp()[0, -1]
    torch.testing.assert_close(plain, torch.tensor([0, 2, 1, 0, 0]).double() / 3, rtol=0, atol=1e-12)


def test_an_empty_cache_is_uniform():
    cache = CacheConfig(5, window=3).build()
    empty = cache._share(torch.zeros(1, 5).double(), torch.zeros(1, 1).double())
    torch.testing.assert_close(empty, torch.full((1, 5), 0.2).double())
    assert cache.init_state(2).tokens.tolist() == [[-1] * 3] * 2


def test_a_cache_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch):
    cache = CacheConfig(VOCABULARY, window=5, decay=0.9, prior=0.1).build()
    tokens = torch.randint(VOCABULARY, (2, 40))
    whole, single = cache(tokens), cache.log_probs(tokens, cache.init_state(2))[0]
    monkeypatch.setattr("regard.models.cache.LOOKED_AT", 30)
    torch.testing.assert_close(cache(tokens), whole, rtol=0, atol=0)
    torch.testing.assert_close(cache.log_probs(tokens, cache.init_state(2))[0], single, rtol=0, atol=0)


@pytest.mark.parametrize("wrong", [{"window": 0}, {"decay": 0.0}, {"decay": 1.5}, {"prior": -1.0}])
def test_impossible_settings_are_refused(wrong: dict[str, float]):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        CacheConfig(5, **wrong)  # pyright: ignore[reportArgumentType]
