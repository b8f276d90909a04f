"""How tensors lie in memory, as kernels ask for it."""

from __future__ import annotations

from torch import Tensor


def dense(t: Tensor) -> Tensor:
    """Any layout whose last axis lies side by side."""
    return t if t.stride(-1) == 1 else t.contiguous()


def step_of(*strides: int) -> int:
    """Strides are passed as multiples of it, from which Triton knows that 16 bytes can be read at once."""
    return 8 if all(stride % 8 == 0 for stride in strides) else 1
