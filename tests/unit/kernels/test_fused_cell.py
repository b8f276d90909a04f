"""torch's recurrences with their weights in another number type."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from regard.kernels.fused_cell import run_cell, typed

CELLS = [nn.RNN, nn.GRU, nn.LSTM]


def made(kind: Any) -> nn.RNNBase:
    torch.manual_seed(0)
    return kind(6, 5, batch_first=True)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("packed", [False, True], ids=["rows", "packed"])
def test_the_weights_are_read_in_the_other_type_and_stay_as_they_are(kind: type[nn.RNNBase], packed: bool):
    cell, x = made(kind), torch.randn(3, 4, 6)
    before = {name: weight.clone() for name, weight in cell.named_parameters()}
    given = pack_padded_sequence(x, torch.tensor([4, 2, 1]), batch_first=True) if packed else x
    got = typed(cell, torch.float64)(given.double())[0]
    expected = copy.deepcopy(cell).double()(given.double())[0]
    assert torch.equal(got.data, expected.data)
    for name, weight in cell.named_parameters():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, before[name])
    assert torch.equal(cell(x)[0], copy.deepcopy(cell)(x)[0])


@pytest.mark.parametrize("kind", CELLS)
def test_gradients_reach_the_weights_themselves(kind: type[nn.RNNBase]):
    cell, x = made(kind), torch.randn(3, 4, 6)
    typed(cell, torch.float64)(x.double())[0].sum().backward()
    found = {name: weight.grad.clone() for name, weight in cell.named_parameters() if weight.grad is not None}
    cell.zero_grad()
    cell(x)[0].sum().backward()
    for name, weight in cell.named_parameters():
        torch.testing.assert_close(found[name], weight.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("kind", CELLS)
def test_bfloat16_is_what_was_asked_for_and_small_gradients_stay(kind: type[nn.RNNBase]):
    cell, x = made(kind).cuda(), torch.randn(3, 4, 6, device="cuda")
    with torch.autocast("cuda", torch.bfloat16), warnings.catch_warnings():
        warnings.simplefilter("error")  # weights in pieces would be told
        y = run_cell(cell, x)[0]
    assert y.dtype == torch.bfloat16
    (y.float().sum() * 1e-10).backward()
    for name, weight in cell.named_parameters():
        assert weight.grad is not None
        assert weight.grad.abs().max() > 0, name
