"""What work costs: its seconds, the bytes it keeps for the backward pass, and the power of the length it grows with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.studies.scaling import power_law

Work = Callable[[], object]


def seconds(work: Work, repeats: int = 3) -> float:
    """The shortest of some runs after one to warm up: a busy machine only ever adds to it."""
    return seconds_of_each([work], repeats)[0]


def seconds_of_each(works: Sequence[Work], repeats: int) -> list[float]:
    """The same for several, run in turn so that a busy time falls on all of them alike."""
    best = [math.inf] * len(works)
    for number in range(repeats + 1):
        for i, work in enumerate(works):
            _finish()
            began = time.perf_counter()
            work()
            _finish()
            if number:
                best[i] = min(best[i], time.perf_counter() - began)
    return best


def kept_bytes(work: Work) -> int:
    """Bytes of the tensors that `work` keeps for its backward pass, each storage once."""
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        # The tensor is held, so that its address cannot be given to another one.
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = work()
    del result
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """p of the power law values ~ sizes^p that fits best, by least squares on logarithms.

    >>> round(exponent([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    law = power_law(list(zip(sizes, values, strict=True)))
    assert law is not None
    return -law.b


def _finish() -> None:
    """Wait for a device that works on its own."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
