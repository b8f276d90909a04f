"""Whether Triton kernels can run on a device; nothing is imported to find out."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch

# Number types of inputs that kernels with float32 sums take.
NARROW = (torch.float32, torch.bfloat16, torch.float16)


@cache
def has_triton(device_type: str) -> bool:
    """On CUDA where Triton is installed. Its interpreter, which tests turn on, runs kernels on a CPU."""
    at_hand = device_type == "cuda" or (device_type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")
    return at_hand and find_spec("triton") is not None
