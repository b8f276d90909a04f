"""Random numbers for the laws: drawn on the host, so that they are the same on every device, and put on the default
one."""

from __future__ import annotations

import torch
from torch import Tensor


def normal(*shape: int, seed: int) -> Tensor:
    """Of the normal distribution, in float64."""
    return _placed(torch.randn(shape, generator=_seeded(seed), dtype=torch.float64, device="cpu"))


def even(*shape: int, seed: int) -> Tensor:
    """From 0 to 1, in float64."""
    return _placed(torch.rand(shape, generator=_seeded(seed), dtype=torch.float64, device="cpu"))


def whole(below: int, *shape: int, seed: int) -> Tensor:
    """Whole numbers from 0 up."""
    return _placed(torch.randint(below, shape, generator=_seeded(seed), device="cpu"))


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _placed(numbers: Tensor) -> Tensor:
    return numbers.to(torch.get_default_device())
