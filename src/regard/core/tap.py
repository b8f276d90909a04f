"""Tap: a named identity placed where a value is worth seeing, and the recorder that listens to it.

Looking never changes the mathematics: a tap returns its input, costs one call when nobody listens, and disappears
under `torch.compile`. A record (what was seen) and a state (what is needed to go on) are two different things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase

from torch import Tensor, nn


class Tap(nn.Module):
    """The identity. `heard` tells a mixer that somebody listens, so that it computes what its fast path never forms."""

    def forward(self, value: Tensor) -> Tensor:
        return value

    @property
    def heard(self) -> bool:
        return bool(self._forward_hooks)


def taps(module: nn.Module) -> dict[str, Tap]:
    """Every tap below `module` by its dotted name, such as `stack.layers.0.mixer.weights`."""
    return {name: part for name, part in module.named_modules() if isinstance(part, Tap)}


@contextmanager
def record(module: nn.Module, pattern: str = "*") -> Iterator[dict[str, list[Tensor]]]:
    """Listen to the taps whose names match `pattern` (shell wildcards) while the block runs.

    with record(model, "*.weights") as seen:
        model(tokens)
    seen["stack.layers.0.mixer.weights"][0]   # (B, H, T, S)

    A tap that is passed several times, as in a loop of steps, has several entries. Values are detached.
    """
    seen: dict[str, list[Tensor]] = {}
    handles = []
    for name, tap in taps(module).items():
        if fnmatchcase(name, pattern):
            entries = seen.setdefault(name, [])
            handles.append(tap.register_forward_hook(_write_to(entries)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _write_to(entries: list[Tensor]) -> Callable[[nn.Module, object, Tensor], None]:
    """A hook that keeps what passes. It returns nothing, so that what passes stays what it was."""

    def hook(_tap: nn.Module, _inputs: object, value: Tensor) -> None:
        entries.append(value.detach())

    return hook
