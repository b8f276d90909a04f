"""What the operators made of Triton kernels share: whether they can run, and what they keep for gradients.

It is asked when a model is called, so that nothing is imported before it is needed.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Protocol

import torch
from torch import Tensor

# The kernels add up in float32; a model in float64 wants more.
KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def kernels_take(x: Tensor) -> bool:
    """Triton is there, and x lies on a device and in a number type that its kernels can do."""
    return x.dtype in KERNEL_DTYPES and has_triton(x.device.type)


def has_triton(device_type: str) -> bool:
    return device_type == "cuda" and _has_triton()


def shared_memory(device_type: str) -> int:
    """Bytes that one program can share between its threads."""
    return _shared_memory() if device_type == "cuda" else 0


@cache
def _shared_memory() -> int:
    return torch.cuda.get_device_properties().shared_memory_per_block_optin


@cache
def _has_triton() -> bool:
    """Matrix products in bfloat16 begin with compute capability 8."""
    return find_spec("triton") is not None and torch.cuda.get_device_capability() >= (8, 0)


for function in (has_triton, shared_memory):
    # As `torch.compiler.assume_constant_result` does, which would import the compiler, two seconds at every start.
    vars(function)["_dynamo_marked_constant"] = True


class Keeps(Protocol):
    """What autograd hands to an operator to keep tensors in."""

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...


def keep_inputs(ctx: Keeps, inputs: tuple[Tensor | None, ...], output: object) -> None:  # noqa: ARG001
    """Nothing but the inputs is kept; the backward pass makes the rest again."""
    ctx.save_for_backward(*inputs)
