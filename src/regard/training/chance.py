"""Chance in training: seeds that are a pure function of (run seed, step), and the states of the global generators.

Because every step seeds the generators itself, a resume needs no generator state and a step can be replayed alone. The
states are saved all the same, for code outside the package that draws from them.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor


def seed_of(seed: int, step: int, stream: str = "step") -> int:
    """A seed for one step of one purpose; near numbers give unrelated seeds."""
    digest = hashlib.sha256(f"{stream}/{seed}/{step}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def seed_step(seed: int, step: int, device: torch.device) -> None:
    """Seed torch's generators for one step: what dropout draws from.

    `torch.manual_seed` would do, but on a machine without a GPU it stores a stack trace at every call.
    """
    torch.default_generator.manual_seed(seed_of(seed, step))
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed_of(seed, step))


def generator_states() -> dict[str, Tensor]:
    """The global generators of Python, numpy and torch as tensors."""
    version, words, gauss = random.getstate()
    state = np.random.get_state(legacy=False)
    assert isinstance(state, dict)
    keys, position = state["state"]["key"], state["state"]["pos"]
    found = {
        "python": torch.tensor([version, *words], dtype=torch.int64),
        "python_gauss": torch.tensor([] if gauss is None else [gauss], dtype=torch.float64),
        "numpy": torch.tensor([*keys.tolist(), position, state["has_gauss"]], dtype=torch.int64),
        "numpy_gauss": torch.tensor([state["gauss"]], dtype=torch.float64),
        "torch": torch.get_rng_state(),
    }
    for index in range(torch.cuda.device_count()):
        found[f"cuda{index}"] = torch.cuda.get_rng_state(index)
    return found


def restore_generators(states: Mapping[str, Tensor]) -> None:
    """Give the global generators the states that `generator_states` gave; devices that are gone are passed over."""
    version, *words = states["python"].tolist()
    gauss = states["python_gauss"].tolist()
    random.setstate((version, tuple(words), gauss[0] if gauss else None))
    *keys, position, has_gauss = states["numpy"].tolist()
    np.random.set_state(("MT19937", np.array(keys, dtype=np.uint32), position, has_gauss, states["numpy_gauss"].item()))
    torch.set_rng_state(states["torch"])
    for index in range(torch.cuda.device_count()):
        if f"cuda{index}" in states:
            torch.cuda.set_rng_state(states[f"cuda{index}"], index)
