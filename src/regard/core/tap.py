"""Tap: a named identity placed where a value is worth seeing, and the recorder that listens to it.

Looking never changes the mathematics: a tap returns its input, costs one call when nobody listens, and disappears
under `torch.compile`. A record (what was seen) and a state (what is needed to go on) are two different things.

Trace: everything that the taps of a model saw while it read something, under their names.

    seen = model.trace(tokens)
    seen["stack.layers.0.mixer.weights"]      (B, H, T, S)
    seen.difference                           of the outputs, with taps recorded and without

Where a fast path never forms a value, recording its tap takes the readable path instead; both are computed, and
`difference` is the largest number by which their outputs lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as every_module

from regard.core.inputs import Inputs


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
        return _has_listeners(self)


def is_heard(part: nn.Module) -> bool:
    """Whether a hook sees what goes into a part or what comes out of it.

    Who asks may then not give it more to do than its own equation, nor go around it: what a hook sees and changes is
    the same with and without gradients. A hook that is called before a part and looks at nothing of it says so itself
    (`is_bystander`).
    """
    of_every_part = every_module._global_forward_hooks or every_module._global_forward_pre_hooks
    return bool(of_every_part) or _has_listeners(part)


def _has_listeners(part: nn.Module) -> bool:
    before = part._forward_pre_hooks
    if part._forward_hooks or not before:
        return bool(part._forward_hooks)
    return not all(getattr(hook, "is_bystander", False) for hook in before.values())


_listening = 0


def anybody_listens() -> bool:
    """Whether a `record` is under way anywhere."""
    return _listening > 0


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
    global _listening
    seen: dict[str, list[Any]] = {}
    handles = []
    for name, tap in taps(module).items():
        if fnmatchcase(name, pattern):
            entries = seen.setdefault(name, [])
            handles.append(tap.register_forward_hook(_write_to(entries, keep)))
    _listening += 1
    try:
        yield seen
    finally:
        _listening -= 1
        for handle in handles:
            handle.remove()


def _write_to(entries: list[Any], keep: Callable[[Tensor], Any]) -> Callable[[nn.Module, object, Tensor], None]:
    """A hook that keeps what passes. It returns nothing, so that what passes stays what it was."""

    def hook(_tap: nn.Module, _inputs: object, value: Tensor) -> None:
        entries.append(keep(value))

    return hook


@dataclass(frozen=True)
class Trace(Mapping[str, Tensor]):
    """Arrays by the names of their taps, time joined along its axis.

    outputs     of the model.
    difference  the largest, between the outputs with the taps recorded and without.
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
def trace(
    module: nn.Module,
    call: Callable[[], Tensor],
    pattern: str = "*",
    tokens: tuple[str, ...] = (),
    fast: Tensor | None = None,
) -> Trace:
    """What the taps below `module` that match `pattern` see during `call`, which runs it.

    fast  what it gives when nobody listens, where that is known.
    """
    with resting(module):
        fast = call() if fast is None else fast
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
