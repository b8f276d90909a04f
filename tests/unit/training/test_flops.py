"""Counted operations against counts by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.core import registry
from regard.data.batch import Batch
from regard.training.flops import Counter, flops_per_target
from regard.training.losses import model_loss


def counted(function) -> float:
    with Counter() as counter:
        function()
    return counter.total


def test_a_product_is_two_operations_for_each_pair_that_meets():
    a, b = torch.randn(3, 5), torch.randn(5, 7)
    assert counted(lambda: a @ b) == 2 * 3 * 5 * 7


def test_a_layer_trains_with_three_products_and_its_gate():
    layer = nn.Linear(5, 7, bias=False)
    x = torch.randn(3, 5, requires_grad=True)
    # Forwards; backwards for the weights and for the input; a tanh for each value and three operations for its slope.
    products = 3 * (2 * 3 * 5 * 7)
    found = counted(lambda: torch.tanh(layer(x)).sum().backward())
    assert products + 3 * 7 <= found <= products + 6 * 3 * 7 + 1


def test_looking_up_and_moving_cost_nothing():
    table, ids = nn.Embedding(10, 4), torch.tensor([[1, 2, 3]])
    assert counted(lambda: torch.cat([table(ids), table(ids)], 1).transpose(1, 2).contiguous()) == 0


def test_a_fourier_transform_costs_its_length_times_the_logarithm():
    assert counted(lambda: torch.fft.fft(torch.zeros(2, 64, dtype=torch.complex64))) == 5 * 2 * 64 * 6


def test_a_fourier_transform_of_real_numbers_counts_them_all_there_and_back():
    there = counted(lambda: torch.fft.rfft(torch.zeros(2, 64)))
    assert there == 5 * 2 * 64 * 6
    assert counted(lambda: torch.fft.irfft(torch.zeros(2, 33, dtype=torch.complex64))) == there


def test_attention_counts_scores_and_weighted_sums():
    q = torch.randn(2, 3, 16, 8)
    found = counted(lambda: nn.functional.scaled_dot_product_attention(q, q, q))
    assert found == 2 * (2 * 2 * 3 * 16 * 16 * 8)


def test_a_fused_recurrence_counts_its_matrices_once_a_token():
    layer = nn.LSTM(6, 10, batch_first=True)
    x = torch.randn(3, 12, 6)
    by_hand = 2 * (4 * 10 * 6 + 4 * 10 * 10) * 3 * 12
    with torch.no_grad():
        assert counted(lambda: layer(x)) == pytest.approx(by_hand, rel=0.2)


@pytest.mark.parametrize("name", ["dan", "fnn", "rnn", "lstm", "gru"])
def test_a_model_of_products_trains_at_six_operations_a_weight(name):
    """Every weight of a map is met once a token forwards and twice backwards; a table is looked up."""
    torch.manual_seed(0)
    model = registry.build(name, vocab_size=50, size="small")
    tokens = torch.randint(50, (2, 32))
    batch = Batch(tokens, tokens.clone(), torch.full((2,), 32), [0, 1])
    tables = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    maps = {id(part.weight) for part in model.modules() if isinstance(part, nn.Linear)}
    weights = sum(p.numel() for p in model.parameters() if id(p) not in tables or id(p) in maps)
    assert flops_per_target(model, batch, model_loss) == pytest.approx(6 * weights, rel=0.1)


def test_counting_changes_neither_the_model_nor_its_chance():
    torch.manual_seed(0)
    model = registry.build("gpt", vocab_size=50, size="tiny")
    before = [parameter.clone() for parameter in model.parameters()]
    tokens = torch.randint(50, (2, 8))
    state = torch.get_rng_state()
    flops_per_target(model, Batch(tokens, tokens.clone(), torch.full((2,), 8), [0, 1]), model_loss)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(before, model.parameters(), strict=True))
