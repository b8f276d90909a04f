"""Chance in training: seeds that are a pure function of (run seed, step), and the states of the global generators.

Every step and every evaluation seeds the generators of Python, numpy and torch itself, so that equal runs have equal
checkpoints, a step can be replayed alone, and code outside the package that draws from them goes on after a resume as
if nothing had happened.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import UsageError

NAMES = ("python", "python_gauss", "numpy", "numpy_gauss", "torch")
MT19937_WORDS = 624


def seed_of(seed: int, step: int, stream: str = "step") -> int:
    """A seed for one step of one purpose; near numbers give unrelated seeds."""
    digest = hashlib.sha256(f"{stream}/{seed}/{step}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def seed_all(seed: int) -> None:
    """Seed the generators of Python, numpy and torch: what a model is built from."""
    _seed_python(seed)
    torch.manual_seed(seed)


def seed_step(seed: int, step: int, device: torch.device, stream: str = "step") -> None:
    """Seed the generators for one step of one purpose: what dropout draws from, and what a model of others may use.

    `torch.manual_seed` would do, but on a machine without a GPU it stores a stack trace at every call.
    """
    number = seed_of(seed, step, stream)
    _seed_python(number)
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(number)
    elif device.type == "mps":
        torch.mps.manual_seed(number)


def _seed_python(seed: int) -> None:
    random.seed(seed)
    np.random.seed([seed & 0xFFFFFFFF, seed >> 32])


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
    if torch.backends.mps.is_available():
        found["mps"] = torch.mps.get_rng_state()
    return found


def restore_generators(states: Mapping[str, Tensor]) -> None:
    """Give the global generators the states that `generator_states` gave; devices that are gone are passed over."""
    _give(states, random.setstate, np.random.set_state, torch.set_rng_state)
    for index in range(torch.cuda.device_count()):
        if f"cuda{index}" in states:
            torch.cuda.set_rng_state(states[f"cuda{index}"], index)
    if torch.backends.mps.is_available() and "mps" in states:
        torch.mps.set_rng_state(states["mps"])


def require_generators(states: Mapping[str, Tensor]) -> None:
    """Refuse states that are none: each is given to a generator that nobody draws from."""
    for name in NAMES:
        if name not in states:
            raise UsageError(f"generator/{name}: is missing")
    _give(states, random.Random().setstate, np.random.RandomState().set_state, torch.Generator().set_state)
    for index in range(torch.cuda.device_count()):
        if f"cuda{index}" in states:
            torch.Generator(device=f"cuda:{index}").set_state(states[f"cuda{index}"])


def _give(
    states: Mapping[str, Tensor],
    set_python: Callable[[tuple[Any, ...]], None],
    set_numpy: Callable[[tuple[str, np.ndarray, int, int, float]], None],
    set_torch: Callable[[Tensor], object],
) -> None:
    version, *words = states["python"].tolist()
    gauss = states["python_gauss"].tolist()
    set_python((version, tuple(words), gauss[0] if gauss else None))
    *keys, position, has_gauss = states["numpy"].tolist()
    if not 0 <= position <= MT19937_WORDS:  # numpy itself would read beyond its table
        raise UsageError(f"generator/numpy: {position} is no place in its table")
    set_numpy(("MT19937", np.array(keys, dtype=np.uint32), position, has_gauss, states["numpy_gauss"].item()))
    set_torch(states["torch"])
