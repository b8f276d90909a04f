from __future__ import annotations

import torch
from torch import nn

from regard.training.ema import Ema


def test_the_average_follows_the_weights_and_is_put_in_place_for_a_while():
    model = nn.Linear(2, 1, bias=False)
    average = Ema(model, 0.5)
    expected = model.weight.detach().clone()
    for step in range(4):
        with torch.no_grad():
            model.weight.add_(1.0 + step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.weight.detach()
        average.update(step)
    last = model.weight.detach().clone()
    with average.in_place():
        torch.testing.assert_close(model.weight.detach(), expected)
    assert torch.equal(model.weight, last)


def test_no_decay_means_no_average():
    model = nn.Linear(2, 1)
    average = Ema(model, 0.0)
    average.update(0)
    before = model.weight.detach().clone()
    with average.in_place():
        assert torch.equal(model.weight, before)
    assert average.tensors() == {}
