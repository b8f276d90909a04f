"""Memories in slots: each row has its own, brought by the row that is inserted."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.core import registry
from regard.core.context import Context
from regard.mixers.cross import CrossAttention, CrossAttentionConfig
from regard.mixers.memory import MemoryState


def made() -> CrossAttention:
    torch.manual_seed(0)
    return CrossAttentionConfig(8, 2).build().double()


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def met(attention: CrossAttention, rows: int, slots: int, seed: int = 1) -> MemoryState:
    memory = Context(memory=drawn(rows, slots, 8, seed=seed))
    state = attention(drawn(rows, 0, 8), attention.init_state(rows), memory)[1]
    assert isinstance(state, MemoryState)
    return state


@torch.no_grad()
def test_slots_take_memories_of_any_length_and_keep_their_own_size() -> None:
    attention, x = made(), drawn(3, 2, 8)
    short, long = met(attention, 1, 2), met(attention, 1, 6, seed=2)
    slots = attention.init_state(3).reserve(9, 6).insert(torch.tensor([2]), long).insert(torch.tensor([0]), short)
    y, slots = attention(x, slots)
    assert isinstance(slots, MemoryState)
    assert slots.keys.shape[:2] == (3, 6)
    torch.testing.assert_close(y[:1], attention(x[:1], short)[0], rtol=0, atol=1e-14)
    torch.testing.assert_close(y[2:], attention(x[2:], long)[0], rtol=0, atol=1e-14)
    # The slot in between has nothing to look at.
    torch.testing.assert_close(y[1], attention.heads_to_output.bias.expand(2, 8), rtol=0, atol=0)  # pyright: ignore


@torch.no_grad()
def test_rows_that_share_a_memory_come_apart_where_one_is_freed() -> None:
    attention, x = made(), drawn(3, 1, 8)
    beam = met(attention, 1, 4).select(torch.zeros(3, dtype=torch.long))
    for state in (beam, beam.reserve(9, 5)):
        expected = attention(x, beam)[0]
        y, after = attention(x, state.free(torch.tensor([1])))
        torch.testing.assert_close(y[[0, 2]], expected[[0, 2]], rtol=0, atol=1e-14)
        assert after.position.tolist() == [1, 1, 1]


@torch.no_grad()
def test_reserved_memories_are_copied_by_select() -> None:
    attention = made()
    slots = met(attention, 2, 4).reserve(9, 4)
    branch = slots.select(torch.tensor([0, 1]))
    before = slots.keys.clone()
    branch.free(torch.tensor([0]))
    torch.testing.assert_close(slots.keys, before, rtol=0, atol=0)


def test_a_memory_without_a_place_is_refused() -> None:
    attention = made()
    with pytest.raises(ValueError, match="a memory of 6 vectors cannot be inserted into 4: reserve more"):
        met(attention, 2, 4).reserve(9, 4).insert(torch.tensor([0]), met(attention, 1, 6))


@pytest.mark.parametrize("name", ["cross", "given-every", "attentive"])
def test_a_row_that_has_met_no_memory_is_refused_among_those_that_have(name: str) -> None:
    mixer = registry.mixer_examples()[name].build()
    _, slots = mixer(torch.zeros(2, 1, 8), mixer.init_state(2), Context(memory=torch.zeros(2, 3, 8)))
    assert slots is not None
    with pytest.raises(ValueError, match="a row must have met its memory before it is inserted"):
        slots.insert(torch.tensor([0]), mixer.init_state(1))
