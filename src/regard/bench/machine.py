"""The machine's ceilings, measured where the rows are measured: operations a second of a matrix product in the number
type of the rows, and bytes a second of reading and of copying what no cache holds.

A product of square matrices reaches what this machine and this torch can do together, less than its maker says.
"""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from regard.kernels.product import multiply, takes

if TYPE_CHECKING:
    from regard.bench.race import Work

SECONDS = 0.4  # that each is repeated for, once it is warm
SIDE = {"cpu": 1536, "cuda": 8192}
LARGE = {"cpu": 256 << 20, "cuda": 2 << 30}  # bytes


@dataclass(frozen=True)
class Machine:
    """What a device can do.

    flops   operations a second of a matrix product in `dtype`.
    read    bytes a second that are read alone.
    copied  bytes a second of a copy, those read and those written together.
    """

    device: str
    name: str
    threads: int
    dtype: str
    flops: float
    read: float
    copied: float

    @property
    def bandwidth(self) -> float:
        """The more of the two: which of them some work could reach depends on how much of it is writing."""
        return max(self.read, self.copied)

    def best(self, other: Machine) -> Machine:
        """The higher ceilings of two measurements."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in ("flops", "read", "copied")}
        return replace(self, **{name: max(pair) for name, pair in pairs.items()})

    def floor(self, operations: float, nbytes: float) -> float:
        """The seconds below which a work cannot be done."""
        return max(operations / self.flops, nbytes / self.bandwidth)

    @property
    def told(self) -> str:
        """In a line."""
        who = f"{self.name}, {self.threads} thread{'s' * (self.threads > 1)}" if self.device == "cpu" else self.name
        speed = f"{self.flops / 1e9:,.0f} GFLOP/s in {self.dtype} products"
        return f"{who}: {speed}, {self.read / 1e9:,.1f} GB/s read, {self.copied / 1e9:,.1f} GB/s copied"


def dtype_of(device: torch.device) -> torch.dtype:
    """The number type of products on a device: float32 on a CPU, bfloat16 elsewhere."""
    return torch.float32 if device.type == "cpu" else torch.bfloat16


@torch.no_grad()
def measured(device: torch.device) -> Machine:
    """The ceilings of a device, in a few seconds."""
    dtype = dtype_of(device)
    side, large = (of.get(device.type, of["cpu"]) for of in (SIDE, LARGE))
    factor = torch.randn(side, side, device=device).to(dtype)
    product = torch.empty_like(factor)
    # Whole numbers: the order of their sum is free, so that no addition waits for another.
    source = torch.ones(large // 8, dtype=torch.int64, device=device)
    copy = torch.empty_like(source)
    return Machine(
        device=device.type,
        name=_name(device),
        threads=torch.get_num_threads(),
        dtype=str(dtype).removeprefix("torch."),
        flops=2 * side**3 / min(_best(lambda: torch.mm(factor, factor, out=product)), _compiled(factor, product)),
        read=large / _best(source.sum),
        copied=2 * large / _best(lambda: copy.copy_(source)),
    )


def _compiled(factor: torch.Tensor, out: torch.Tensor) -> float:
    """Seconds of the same product by kernels/product.c, where it is taken."""
    return _best(lambda: multiply(out, factor, factor)) if takes(factor) else float("inf")


def finish() -> None:
    """Wait for a device that works on its own."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _best(work: Work) -> float:
    """Seconds of the fastest of some runs: a ceiling is what can be reached."""
    work()
    finish()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while best == float("inf") or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        finish()
        best = min(best, time.perf_counter() - start)
    return best


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine() or device.type
