"""Numbers that are chosen by a held-out loss."""

from __future__ import annotations

import math

import torch

from regard.core.fitted import Nobody
from regard.fitting.choice import Open, choose


def test_the_lowest_loss_is_chosen_and_what_the_config_says_is_taken():
    chosen = torch.tensor([9.0, 9.0, 9.0])
    asked = [Open("a", 1, None, (1.0, 2.0, 3.0)), Open("b", 0, 7.0, (1.0,)), Open("c", 2, None, (4.0, 5.0))]
    losses = choose(chosen, asked, lambda: float((chosen[1] - 2) ** 2 + (chosen[2] - chosen[1]) ** 2), Nobody())
    assert chosen.tolist() == [7.0, 3.0, 4.0]
    assert losses == {"a": {"1": 65.0, "2": 49.0, "3": 37.0}, "c": {"4": 2.0, "5": 5.0}}


def test_without_a_loss_the_default_stays():
    chosen = torch.tensor([9.0])
    assert choose(chosen, [Open("a", 0, None, (1.0, 2.0))], lambda: math.nan, Nobody()) == {"a": {}}
    assert chosen.tolist() == [9.0]
