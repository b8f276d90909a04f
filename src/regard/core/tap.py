"""Tap: a named identity placed where a value is worth seeing, and the recorder that listens to it.

Looking never changes the mathematics: a tap returns its input, costs one call when nobody listens, and disappears
under `torch.compile`. A record (what was seen) and a state (what is needed to go on) are two different things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn


class Tap(nn.Module):
    """The identity. `recorded` tells a mixer that somebody listens, so that it forms what its fast path never does.

    axis     of time in what passes, along which the parts of a loop are joined; None where one step passes at a time.
    repeats  whether a loop passes the same again, as a memory that is looked at before every step.
    """

    def __init__(self, axis: int | None = 1, repeats: bool = False) -> None:
        super().__init__()
        self.axis, self.repeats = axis, repeats

    def joined(self, entries: Sequence[Tensor]) -> Tensor:
        """All that has passed, as one tensor with an axis of time."""
        if self.repeats:
            return entries[-1]
        return torch.stack(list(entries), 1) if self.axis is None else torch.cat(list(entries), self.axis)

    def forward(self, value: Tensor) -> Tensor:
        return value

    @property
    def recorded(self) -> bool:
        """Whether somebody listens."""
        return bool(self._forward_hooks)


def taps(module: nn.Module) -> dict[str, Tap]:
    """Every tap below `module` by its dotted name, such as `stack.layers.0.mixer.weights`."""
    return {name: part for name, part in module.named_modules() if isinstance(part, Tap)}


@contextmanager
def record(
    module: nn.Module, pattern: str = "*", keep: Callable[[Tensor], Any] = Tensor.detach
) -> Iterator[dict[str, list[Any]]]:
    """Listen to the taps whose names match `pattern` (shell wildcards) while the block runs.

    with record(model, "*.weights") as seen:
        model(tokens)
    seen["stack.layers.0.mixer.weights"][0]   # (B, H, T, S)

    A tap that is passed several times, as in a loop of steps, has several entries. Values are detached; or `keep` says
    what is kept of each, so that a summary of every layer needs the memory of one.
    """
    seen: dict[str, list[Any]] = {}
    handles = []
    for name, tap in taps(module).items():
        if fnmatchcase(name, pattern):
            entries = seen.setdefault(name, [])
            handles.append(tap.register_forward_hook(_write_to(entries, keep)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _write_to(entries: list[Any], keep: Callable[[Tensor], Any]) -> Callable[[nn.Module, object, Tensor], None]:
    """A hook that keeps what passes. It returns nothing, so that what passes stays what it was."""

    def hook(_tap: nn.Module, _inputs: object, value: Tensor) -> None:
        entries.append(keep(value))

    return hook
