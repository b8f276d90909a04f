"""Whether Triton kernels can run on a device, and whether a step of decoding takes them; nothing is imported for it."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor, nn

# Number types of inputs that kernels with float32 sums take.
NARROW = (torch.float32, torch.bfloat16, torch.float16)
HALF = (torch.bfloat16, torch.float16)
PLAIN = (Tensor, nn.Parameter)


@cache
def has_triton(device_type: str) -> bool:
    """On CUDA where Triton is installed. Its interpreter, which tests turn on, runs kernels on a CPU."""
    at_hand = device_type == "cuda" or (device_type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")
    return at_hand and find_spec("triton") is not None


def takes_kernel(x: Tensor, *others: Tensor | None) -> bool:
    """Whether kernels that know no gradients take these tensors, plain ones of one number type, as they are."""
    device = x.device.type
    if torch.is_grad_enabled() or x.dtype not in NARROW or not has_triton(device):
        return False
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(device) or x.numel() == 0:
        return False
    return all(other is None or (type(other) in PLAIN and other.dtype == x.dtype) for other in (x, *others))


def processors(device: torch.device) -> int:
    """How many programs a card runs side by side at least."""
    return 4 if device.type == "cpu" else torch.cuda.get_device_properties(device).multi_processor_count


@cache
def launches_early(device: torch.device) -> bool:
    """Whether a kernel of a step is put on the card before the one ahead of it has ended, to be ready when it has.

    It is Hopper's dependent launch: such a kernel waits by itself before it reads or writes what another one made.
    """
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)
