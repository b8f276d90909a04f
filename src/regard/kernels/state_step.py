"""Whether one token of a state space is done by one Triton kernel (kernels/state_step_triton.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.kernels.choice import takes_kernel

# Of a channel, which a program holds whole.
MOST_STATES = 1024


def step_kernels_take(u: Tensor, h: Tensor, *others: Tensor) -> bool:
    """Whether a kernel does one token of inputs u (B, ...) from the state h (..., N), in place if it may."""
    plain = h.dtype == torch.float32 and h.is_contiguous() and h.shape[-1] <= MOST_STATES
    return plain and type(h) is Tensor and takes_kernel(u, *others)
