"""Cross-attention: what it remembers, what padding in the memory does, and torch's own beside it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from regard.core.context import Context
from regard.core.tap import record
from regard.errors import UsageError
from regard.mixers.cross import CrossAttention, CrossAttentionConfig
from regard.mixers.memory import MemoryState


def made(**settings: object) -> CrossAttention:
    torch.manual_seed(0)
    return CrossAttentionConfig(8, 2, **settings).build().double()  # pyright: ignore[reportArgumentType]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@torch.no_grad()
def test_equals_torch_with_padded_memories_of_another_width():
    ours = made(d_memory=6)
    peer = nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True).double()
    biases = [ours.input_to_queries.bias, torch.zeros(8), ours.memory_to_values.bias]  # pyright: ignore
    for name, part in (("q", ours.input_to_queries), ("k", ours.memory_to_keys), ("v", ours.memory_to_values)):
        getattr(peer, f"{name}_proj_weight").copy_(part.weight)
    peer.in_proj_bias.copy_(torch.cat(biases))  # pyright: ignore
    peer.out_proj.load_state_dict(ours.heads_to_output.state_dict())
    x, memory, lengths = drawn(3, 4, 8), drawn(3, 5, 6, seed=1), torch.tensor([5, 1, 3])
    padding = torch.arange(5) >= lengths[:, None]
    expected, _ = peer(x, memory, memory, key_padding_mask=padding)
    got = ours(x, None, Context(memory=memory, memory_lengths=lengths))[0]
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-14)


@torch.no_grad()
@pytest.mark.parametrize("score", ["dot", "scaled_dot", "additive", "bilinear", "cosine"])
def test_padding_in_the_memory_changes_nothing(score: str):
    attention = made(score=score)
    x, memory = drawn(2, 3, 8), drawn(2, 4, 8, seed=1)
    longer = torch.cat([memory, torch.full((2, 3, 8), 1e6, dtype=torch.float64)], 1)
    plain = attention(x, None, Context(memory=memory))[0]
    padded = attention(x, None, Context(memory=longer, memory_lengths=torch.tensor([4, 4])))[0]
    torch.testing.assert_close(padded, plain, rtol=0, atol=1e-14)


@torch.no_grad()
def test_an_empty_memory_gives_an_empty_context_and_spoils_no_other_row():
    attention = made(project_output=False)
    x, memory = drawn(2, 3, 8), drawn(2, 4, 8, seed=1)
    y = attention(x, None, Context(memory=memory, memory_lengths=torch.tensor([0, 4])))[0]
    assert (y[0] == 0).all()
    assert torch.isfinite(y[1]).all()
    assert (y[1] != 0).any()


@torch.no_grad()
def test_the_memory_is_projected_once_and_goes_with_its_row():
    attention, calls = made(), []
    attention.memory_to_keys.register_forward_hook(lambda *_: calls.append(1))
    x, memory = drawn(3, 6, 8), drawn(3, 4, 8, seed=1)
    context = Context(memory=memory, memory_lengths=torch.tensor([4, 2, 3]))
    whole = attention(x, None, context)[0]
    calls.clear()
    first, state = attention(x[:, :1], attention.init_state(3), context)
    order = torch.tensor([2, 0, 0])
    state, rows = state.select(order), [first[order]]
    for t in range(1, 6):
        y, state = attention(x[order, t : t + 1], state)  # without the memory: the state has it
        rows.append(y)
    assert len(calls) == 1
    torch.testing.assert_close(torch.cat(rows, 1), whole[order], rtol=0, atol=1e-14)


@torch.no_grad()
def test_copies_of_a_row_look_at_one_memory():
    attention, memory = made(), drawn(3, 4, 8, seed=1)
    context = Context(memory=memory, memory_lengths=torch.tensor([4, 2, 3]))
    _, state = attention(drawn(3, 1, 8), attention.init_state(3), context)
    assert isinstance(state, MemoryState)
    beams = state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
    swapped = beams.select(torch.tensor([1, 1, 3, 2, 4, 4]))
    assert swapped.keys.data_ptr() == beams.keys.data_ptr() == state.keys.data_ptr()
    thinned = beams.select(torch.tensor([5, 1, 0, 4, 4]))
    assert thinned.keys.shape[0] == 2
    x = drawn(5, 2, 8, seed=2)
    for rows, owners in ((thinned, [2, 0, 0, 2, 2]), (swapped.select(torch.arange(5)), [0, 0, 1, 1, 2])):
        alone = [attention(x[i : i + 1], state.select(torch.tensor([row])))[0] for i, row in enumerate(owners)]
        torch.testing.assert_close(attention(x, rows)[0], torch.cat(alone), rtol=0, atol=1e-14)


@torch.no_grad()
def test_taps_show_every_row_its_own_memory():
    attention, memory = made(), drawn(2, 4, 8, seed=1)
    _, state = attention(drawn(2, 0, 8), attention.init_state(2), Context(memory=memory))
    x, index = drawn(3, 2, 8), torch.tensor([1, 0, 1])
    with record(attention) as seen:
        heard, _ = attention(x, state.select(index))
    assert seen["weights"][0].shape == (3, 2, 2, 4)
    torch.testing.assert_close(seen["keys"][0], attention.memory_to_keys(memory).unflatten(-1, (2, 4))[index])
    torch.testing.assert_close(attention(x, state.select(index))[0], heard, rtol=0, atol=1e-14)


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="no memory"):
        made()(drawn(1, 2, 8))
    with pytest.raises(UsageError, match="does not divide"):
        CrossAttentionConfig(8, 3)
    with pytest.raises(UsageError, match="one head"):
        CrossAttentionConfig(8, 2, project_values=False)
