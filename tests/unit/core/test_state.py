"""States: rows that come and go."""

from __future__ import annotations

import pytest
import torch

from regard.core.state import Chain, Position, RecentTokens


def test_a_chain_takes_the_rows_of_all_its_parts() -> None:
    state = Chain(
        (Position(torch.tensor([5, 6, 7])), RecentTokens(torch.arange(6).view(3, 2), torch.tensor([5, 6, 7])))
    )
    other = Chain((Position(torch.tensor([1, 2])), RecentTokens(torch.tensor([[8, 9], [9, 8]]), torch.tensor([1, 2]))))
    mixed = state.insert(torch.tensor([2, 0]), other)
    assert mixed[0].position.tolist() == mixed[1].position.tolist() == [2, 6, 1]
    recent = mixed[1]
    assert isinstance(recent, RecentTokens)
    assert recent.tokens.tolist() == [[9, 8], [2, 3], [8, 9]]
    assert state.position.tolist() == [5, 6, 7]


def test_freed_tokens_are_none_and_not_token_0() -> None:
    freed = RecentTokens(torch.arange(6).view(3, 2), torch.tensor([5, 6, 7])).free(torch.tensor([1]))
    assert (freed.tokens.tolist(), freed.count.tolist()) == ([[0, 1], [-1, -1], [4, 5]], [5, 0, 7])


def test_each_row_needs_one_of_the_other_state() -> None:
    with pytest.raises(ValueError, match="1 rows cannot take the 2 of another state: name one for each"):
        Position(torch.zeros(3)).insert(torch.tensor([1]), Position(torch.zeros(2)))
