"""Precision: in which number type the large products of a training step are computed.

    float32    everything
    bfloat16   products and the residual stream; weights, moments, sums inside norms and the loss in float32
    float16    the same with its narrow range, for which the loss is scaled so that small gradients do not vanish
    fp8        as bfloat16, with the large products of the layers in 8 bits (kernels/fp8.py)

The scale of a loss (Micikevicius et al. 2018, 3.2) doubles after 2,000 steps without an overflow and halves at each
one, whose step is left out. It is kept on the device: nobody waits to look at it.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from regard.errors import UsageError

Precision = Literal["float32", "bfloat16", "float16", "fp8"]

FIRST_SCALE = 2.0**16
# Below it nothing but a loss or a gradient that is not finite by itself can be the reason.
SMALLEST_SCALE = 2.0**-10
STEPS_BEFORE_GROWTH = 2000
HOPPER: tuple[int, int] = (8, 9)  # the first devices with 8-bit matrix units: Ada and Hopper
AMPERE: tuple[int, int] = (8, 0)  # the first with bfloat16


def has(precision: Precision, device: torch.device) -> bool:
    """Whether a device computes in a number type; of GPUs, whether they have units for it."""
    if device.type != "cuda":
        return precision != "fp8"
    first = {"fp8": HOPPER, "bfloat16": AMPERE}
    return precision not in first or torch.cuda.get_device_capability(device) >= first[precision]


def precision_of(name: Precision | Literal["auto"], device: torch.device) -> Precision:
    """What a setting means on a device; refused where the device lacks it."""
    if name == "auto":
        return "bfloat16" if device.type == "cuda" and has("bfloat16", device) else "float32"
    if name == "fp8" and not has(name, device):
        raise UsageError(
            f"train.precision: fp8 needs a GPU with 8-bit products (capability 8.9 or higher) and this is "
            f"{_told(device)}; say bfloat16"
        )
    return name


def _told(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"a {device.type.upper()}"


def products_in(precision: Precision) -> torch.dtype:
    """The numbers to which the matrices of large products are cast; those of fp8 are scaled from float32."""
    return {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision, torch.float32)


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """The context in which forward passes are made."""
    dtype = torch.float16 if precision == "float16" else torch.bfloat16
    return torch.autocast(device.type, dtype, enabled=precision != "float32")


class LossScale:
    """By what a loss is multiplied before its gradients are taken, and its gradients divided by afterwards."""

    def __init__(self, device: torch.device) -> None:
        self.scale = torch.full((), FIRST_SCALE, device=device)
        self.good = torch.zeros((), device=device)

    def scaled(self, loss: Tensor) -> Tensor:
        return loss * self.scale

    def unscale(self, gradients: list[Tensor]) -> None:
        """Divide all gradients by the scale; it is a power of two, so that nothing is rounded."""
        torch._foreach_mul_(gradients, self.scale.reciprocal())  # pyright: ignore[reportPrivateImportUsage]

    def update(self, overflowed: Tensor) -> Tensor:
        """Take notice of a step; a boolean comes back, whether the scale has become so small that no scale will do."""
        good = torch.where(overflowed, 0.0, self.good + 1)
        grows = good >= STEPS_BEFORE_GROWTH
        factor = torch.where(overflowed, 0.5, torch.where(grows, 2.0, 1.0))
        self.scale.mul_(factor)
        self.good.copy_(torch.where(grows, 0.0, good))
        return self.scale < SMALLEST_SCALE

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps; copying into it restores it."""
        return {"scale": self.scale, "good": self.good}
