"""Calls: what a part of a model gave, call after call, put together with time first, as far as there is room for it.

Where there is none, the length of the vector at each place is kept alone: a long text makes more numbers than a machine
holds. What is kept is a copy: the model may go on to write into what it was given.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.core.tap import Tap


class Calls:
    """What a part gave.

    count     calls so far. numbers: that are kept of them.
    is_whole  whether every one was kept.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.kept: list[Tensor] = []
        self.count, self.numbers, self.is_whole = 0, 0, True
        self.inner: tuple[int, ...] = ()

    def add(self, given: Tensor, room: int) -> int:
        """Keep what a call gave where there is room for so many numbers, and say how many more that takes."""
        given = given.detach()[:1]
        before = self.numbers
        if self.kept and self._is_given_again():
            self.kept, self.numbers = [], 0
        self.inner = tuple(timed(self.module, given[0]).shape[1:])
        self.count += 1
        self.numbers += given.numel()
        if self.is_whole and self.numbers - before > room:
            self.is_whole = False
            self.kept = [lengths(self.module, one) for one in self.kept]
        self.kept.append(given.clone() if self.is_whole else lengths(self.module, given))
        self.numbers = self.numbers if self.is_whole else 0
        return self.numbers - before

    def value(self) -> Tensor:
        """(T, ...) of all calls; where not every number was kept, the length at each place."""
        return timed(self.module, self._joined(self.kept)[0])

    def shape(self, value: Tensor) -> tuple[int, ...]:
        """Of all that was given."""
        return tuple(value.shape) if self.is_whole else (len(value), *self.inner)

    def _is_given_again(self) -> bool:
        """Whether each call gives all that the one before gave, as of a memory that is looked at before every step."""
        if isinstance(self.module, Tap):
            return self.module.repeats
        first = self.kept[0]
        return first.dim() > 2 and first.shape[1] != 1

    def _joined(self, calls: Sequence[Tensor]) -> Tensor:
        """One tensor with an axis of time."""
        if isinstance(self.module, Tap):
            return self.module.joined(calls)
        if len(calls) == 1:
            return calls[0]
        return torch.stack(list(calls), 1) if calls[0].dim() == 2 else torch.cat(list(calls), 1)


def timed(module: nn.Module, value: Tensor) -> Tensor:
    """What one row gave, time first: (T, ...). A vector that stands for the whole is one row."""
    if isinstance(module, Tap):
        return value.movedim(max(0, (module.axis or 1) - 1), 0)
    return value[None] if value.dim() == 1 else value


def lengths(module: nn.Module, value: Tensor) -> Tensor:
    """The length of the vector at each place of time, all other axes kept with one number."""
    axis = module.axis if isinstance(module, Tap) else 1 if value.dim() > 2 else None
    others = [one for one in range(1, value.dim()) if one != axis]
    held = finite(value)
    return torch.linalg.vector_norm(held, dim=others, keepdim=True) if others else held.abs()


def finite(value: Tensor) -> Tensor:
    """In float32, with nothing where a number has no size, as the logarithm of what cannot be."""
    return value.to(torch.float32).nan_to_num(0.0, 0.0, 0.0)
