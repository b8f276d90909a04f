"""Kernels of a training step, each alone: a part of benchmarks/training.py."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from regard.kernels import attention_backend


def kernels() -> None:
    """The kernel of the loss by block and warps, and attention by backend, each alone."""
    from regard.kernels.cross_entropy_triton import gradient_in_place

    logits = torch.randn(8192, 50304, device="cuda", dtype=torch.bfloat16)
    targets = torch.randint(50257, (8192,), device="cuda")
    floor = 2 * logits.numel() * logits.element_size() / 4.2e12
    print("\n| kernel of the loss, 8,192 x 50,304 | ms | share of 4.2 TB/s |\n| --- | --- | --- |")
    for block in (2048, 4096, 8192, 16384):
        for warps in (4, 8, 16):
            seconds = _seconds(lambda b=block, w=warps: gradient_in_place(logits, targets, 50257, -100, b, w))
            print(f"| block {block}, {warps} warps | {1e3 * seconds:.3f} | {floor / seconds:.0%} |", flush=True)
    del logits
    print("\n| attention, forward and backward | ms | TFLOP/s |\n| --- | --- | --- |")
    for batch, length in ((64, 1024), (16, 4096), (4, 16384)):
        size = (batch, 12, length, 64)
        shape = attention_backend.Shape(size, size, torch.bfloat16, True, 0.0)
        for name, milliseconds in attention_backend.order_of(shape, torch.device("cuda")):
            rate = 7 * shape.work / milliseconds / 1e9
            print(f"| {name.lower()}, {batch} x {length:,} | {milliseconds:.2f} | {rate:.0f} |", flush=True)


def _seconds(call: Callable[[], object], repeats: int = 10) -> float:
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats
