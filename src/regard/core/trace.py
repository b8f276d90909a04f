"""Trace: everything that the taps of a model saw while it read something, under their names.

    seen = model.trace(tokens)
    seen["stack.layers.0.mixer.weights"]      (B, H, T, S)
    seen.difference                           of the outputs, with taps heard and without

Where a fast path never forms a value, hearing its tap takes the readable path instead; both are computed, and
`difference` is the largest number by which their outputs lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.inputs import Inputs
from regard.core.tap import record, taps


@dataclass(frozen=True)
class Trace(Mapping[str, Tensor]):
    """Arrays by the names of their taps, time joined along its axis.

    outputs     of the model.
    difference  the largest, between the outputs with the taps heard and without.
    tokens      what was read, as people write it, where a tokenizer said so.
    """

    arrays: Mapping[str, Tensor]
    outputs: Tensor
    difference: float
    tokens: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Tensor:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


@torch.no_grad()
def trace(module: nn.Module, call: Callable[[], Tensor], pattern: str = "*", tokens: tuple[str, ...] = ()) -> Trace:
    """What the taps below `module` that match `pattern` see during `call`, which runs it."""
    with resting(module):
        fast = call()
        with record(plain(module), pattern) as seen:
            outputs = call()
    places = taps(plain(module))
    arrays = {name: places[name].joined(entries) for name, entries in seen.items() if entries}
    return Trace(arrays, outputs, apart(outputs, fast), tokens)


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference; equal infinities, which logits of what cannot be have, are none, and NaN is infinite."""
    if not one.numel():
        return 0.0
    difference = torch.where(one == other, 0.0, (one - other).abs())
    return float(difference.nan_to_num(nan=math.inf).max())


class Traced(nn.Module):
    """Base of models that can be traced as they are called."""

    head: Any

    def trace(self, *inputs: Inputs, pattern: str = "*") -> Trace:
        """What the taps see while the model reads and answers."""
        return trace(self, lambda: self.head(self(*inputs)[0]), pattern)


def plain(module: nn.Module) -> nn.Module:
    """The module itself, where `torch.compile` has wrapped it: compiled code has no taps."""
    return getattr(module, "_orig_mod", module)


@contextmanager
def resting(module: nn.Module) -> Iterator[None]:
    """Evaluation mode, each part put back in its own mode afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    for part, _ in modes:
        part.training = False
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
