from __future__ import annotations

import random

import numpy as np
import torch

from regard.training.chance import generator_states, restore_generators, seed_of, seed_step


def test_seeds_are_pure_and_apart():
    seeds = {seed_of(seed, step, stream) for seed in range(5) for step in range(200) for stream in ("step", "sample")}
    assert len(seeds) == 2000
    assert seed_of(3, 7) == seed_of(3, 7)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_step_draws_the_same_numbers_whatever_came_before():
    seed_step(1, 5, torch.device("cpu"))
    first = torch.rand(4)
    torch.rand(100)
    seed_step(1, 5, torch.device("cpu"))
    assert torch.equal(torch.rand(4), first)


def test_the_three_generators_come_back_through_tensors():
    random.gauss(0, 1)
    np.random.standard_normal()
    states = {name: tensor.clone() for name, tensor in generator_states().items()}

    def draw():
        drawn = [
            random.random(),
            random.gauss(0, 1),
            np.random.rand(),
            np.random.standard_normal(),
            torch.rand(1).item(),
        ]
        return [*drawn, random.gauss(0, 1), np.random.standard_normal()]

    expected = draw()
    restore_generators(states)
    assert draw() == expected
