"""Whether Triton kernels can run: asked when a model is called, so that nothing is imported before it is needed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

# The kernels add up in float32; a model in float64 wants more.
KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def kernels_take(x: Tensor) -> bool:
    """Triton is there, and x lies on a device and in a number type that its kernels can do."""
    return x.dtype in KERNEL_DTYPES and has_triton(x.device.type)


@torch.compiler.assume_constant_result
def has_triton(device_type: str) -> bool:
    return device_type == "cuda" and _has_triton()


@cache
def _has_triton() -> bool:
    """Matrix products in bfloat16 begin with compute capability 8."""
    return find_spec("triton") is not None and torch.cuda.get_device_capability() >= (8, 0)
