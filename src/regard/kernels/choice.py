"""Whether Triton kernels can run on a device, and whether a step of decoding takes them; nothing is imported for it."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor, nn

# Number types of inputs that kernels with float32 sums take; a model in float64 wants more.
NARROW = (torch.float32, torch.bfloat16, torch.float16)
HALF = (torch.bfloat16, torch.float16)
PLAIN = (Tensor, nn.Parameter)


def has_triton(device: torch.device) -> bool:
    """On CUDA where Triton is installed and matrix products in bfloat16 are there, with compute capability 8 and above.
    Its interpreter, which tests turn on, runs kernels on a CPU.

    Triton launches on the current device of a thread, whatever device its tensors lie on: for another one there is
    none (core/device.py makes that of a model the current one).
    """
    return _has_triton(device) and (device.type == "cpu" or _is_current(device))


@cache
def _has_triton(device: torch.device) -> bool:
    if find_spec("triton") is None:
        return False
    if device.type == "cpu":
        return os.environ.get("TRITON_INTERPRET") == "1"
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)


def _is_current(device: torch.device) -> bool:
    return device.index is None or _cards() == 1 or device.index == torch.cuda.current_device()


@cache
def _cards() -> int:
    return torch.cuda.device_count()


# As `torch.compiler.assume_constant_result` does, which would import the compiler, two seconds at every start.
vars(has_triton)["_dynamo_marked_constant"] = True


def takes_kernel(x: Tensor, *others: Tensor | None) -> bool:
    """Whether kernels that know no gradients take these tensors, plain ones of one number type, as they are."""
    device = x.device
    if torch.is_grad_enabled() or x.dtype not in NARROW or torch.compiler.is_compiling() or not has_triton(device):
        return False
    if torch.is_autocast_enabled(device.type) or x.numel() == 0:
        return False
    return all(other is None or (type(other) in PLAIN and other.dtype == x.dtype) for other in (x, *others))


def processors(device: torch.device) -> int:
    """How many programs a card runs side by side at least."""
    return 4 if device.type != "cuda" else torch.cuda.get_device_properties(device).multi_processor_count


@cache
def launches_early(device: torch.device) -> bool:
    """Whether a kernel of a step is put on the card before the one ahead of it has ended, to be ready when it has.

    It is Hopper's dependent launch: such a kernel waits by itself before it reads or writes what another one made.
    """
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)
