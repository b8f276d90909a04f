from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny_run
from regard.training.loop import train
from regard.training.losses import model_loss
from regard.training.random_streams import generator_states, restore_generators, seed_all, seed_of, seed_step
from regard.training.resume import Resume


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


def draws() -> list[float]:
    return [random.random(), float(np.random.rand()), torch.rand(1).item()]


@pytest.mark.parametrize("seed_it", [lambda: seed_all(2**63 - 1), lambda: seed_step(1, 5, torch.device("cpu"))])
def test_python_numpy_and_torch_are_all_part_of_the_seed(seed_it):
    seed_it()
    first = draws()
    draws()
    seed_it()
    assert draws() == first


def noisy_loss(model, batch, state):
    """What somebody else's part does that draws from the generators of Python and numpy."""
    total, count, state = model_loss(model, batch, state)
    return total * (1 + 0.1 * random.random() + 0.1 * float(np.random.rand())), count, state


def noisy_run(path: Path, budget: str, resume: str = "no") -> Path:
    random.seed()
    np.random.seed()
    model = tiny_run.model_of()
    task = replace(tiny_run.task_of(model), objective=noisy_loss)
    settings = replace(tiny_run.SETTINGS, budget=budget, evaluate_every=5, save_every=5, schedule="constant", warmup=0)
    train(model, task, settings, path, resume=Resume(resume, ("budget",)))
    return path / "checkpoints"


def test_equal_runs_have_equal_checkpoints_also_of_a_model_that_draws_from_python_and_numpy(tmp_path: Path):
    whole, again = (noisy_run(tmp_path / name, "12steps") for name in ("whole", "again"))
    noisy_run(tmp_path / "parts", "7steps")
    parts = noisy_run(tmp_path / "parts", "12steps", "last")
    for name in ("model.safetensors", "optimiser.safetensors"):
        files = [(one / "00000012" / name).read_bytes() for one in (whole, again, parts)]
        assert files[0] == files[1], f"{name} of the same run again"
        assert files[0] == files[2], f"{name} of the run in two parts"
