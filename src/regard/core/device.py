"""Devices by name: auto, cpu, cuda, cuda:N or mps, Apple's."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from regard.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

DEVICES = ("auto", "cpu", "cuda", "mps")
WITHOUT_FLOAT64 = ("mps",)


def is_device_name(value: object) -> bool:
    """Whether a value can name a device, be it here or not.

    >>> [is_device_name(name) for name in ("auto", "cpu", "cuda", "cuda:1", "mps", "cpu:1", "cuda:", "gpu", 0)]
    [True, True, True, True, True, False, False, False, False]
    """
    if not isinstance(value, str):
        return False
    kind, colon, index = value.partition(":")
    return value in DEVICES or (kind == "cuda" and bool(colon) and index.isdecimal() and index.isascii())


def device_named(name: str) -> torch.device:
    """The device of a name, refused when this machine has none such. auto: a GPU where there is one."""
    import torch

    if name == "auto":
        mps = "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device("cuda" if torch.cuda.is_available() else mps)
    if not is_device_name(name):
        raise UsageError(f"train.device: {name!r} is no device; say auto, cpu, cuda, cuda:N or mps")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"train.device: {name}: this machine has {torch.cuda.device_count()} CUDA devices")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError("train.device: mps: needs a Mac with Apple's GPU and a torch built for it; say cpu")
    return device


def any_device(module: nn.Module) -> torch.device | None:
    """Where the numbers of a module are, those that are learnt or those that are fitted; None where it has none."""
    first = next(module.parameters(), None)
    first = next(module.buffers(), None) if first is None else first
    return None if first is None else first.device


def device_of(module: nn.Module) -> torch.device:
    """The same; the CPU where there are no numbers."""
    import torch

    return any_device(module) or torch.device("cpu")


def widest(device: torch.device | None) -> torch.dtype:
    """Float64 where a device has it (None is the host): a long sum of small numbers drifts in float32."""
    import torch

    return torch.float32 if device is not None and device.type in WITHOUT_FLOAT64 else torch.float64


def wide(x: Tensor) -> Tensor:
    """The same numbers in the widest type of their device."""
    return x.to(widest(x.device))


def move(model: nn.Module, device: torch.device) -> None:
    """Move a model to a device, which becomes the current one of this thread.

    A model with numbers in float64, as counted and fitted ones have, stays on the host where the device has none.
    torch finds the device of an operation by its tensors. Triton launches a kernel on the current device, wherever its
    tensors lie, and that is the first card until it is said otherwise.
    """
    import torch

    if device.type in WITHOUT_FLOAT64 and any(
        part.dtype in (torch.float64, torch.complex128) for part in (*model.parameters(), *model.buffers())
    ):
        return
    model.to(device)
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)


def current(device: torch.device) -> AbstractContextManager[object]:
    """Within it a device is the current one of this thread, whichever thread that is."""
    import torch

    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
