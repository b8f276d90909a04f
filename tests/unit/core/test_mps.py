"""Apple's GPU, as far as it can be told without one: when it is chosen, and that nothing in float64 goes there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from regard.core import device as devices
from regard.core.device import device_named, move, wide
from regard.errors import UsageError
from regard.training.random_streams import generator_states, restore_generators, seed_step

MPS = torch.device("mps")


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A machine that says it has such a GPU; what its generator was told."""
    told: list[Any] = []
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.mps, "manual_seed", told.append)
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: torch.tensor([7], dtype=torch.uint8))
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda state: told.append(state.tolist()))
    return told


def test_it_is_chosen_where_it_is_and_refused_where_it_is_not(mac: list[Any], monkeypatch: pytest.MonkeyPatch):
    assert device_named("auto") == device_named("mps") == MPS
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert device_named("auto") == torch.device("cpu")
    with pytest.raises(UsageError, match="mps: needs a Mac"):
        device_named("mps")


def test_its_chance_is_seeded_kept_and_restored(mac: list[Any]):
    seed_step(1, 2, MPS)
    assert mac == [torch.initial_seed()]
    restore_generators(generator_states())
    assert mac[1:] == [[7]]


def test_a_model_with_float64_stays_on_the_host(monkeypatch: pytest.MonkeyPatch):
    moved: list[Any] = []
    monkeypatch.setattr(nn.Module, "to", lambda self, device: moved.append(device))
    model = nn.Linear(2, 2)
    move(model, MPS)
    assert moved == [MPS]
    model.register_buffer("counts", torch.zeros(2, dtype=torch.float64))
    move(model, MPS)
    assert moved == [MPS]
    move(model, torch.device("cpu"))
    assert moved == [MPS, torch.device("cpu")]


def test_sums_are_in_the_widest_numbers_that_a_device_has(monkeypatch: pytest.MonkeyPatch):
    x = torch.ones(2, dtype=torch.bfloat16)
    assert wide(x).dtype == torch.float64
    monkeypatch.setattr(devices, "WITHOUT_FLOAT64", ("cpu",))
    assert wide(x).dtype == torch.float32
