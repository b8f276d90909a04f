"""Layers: the vectors of a text before the first layer of a model, after each of them, and as they leave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.stack import Stack
from regard.core.tap import plain, record, resting
from regard.tasks.reading import Reading

BEFORE, AFTER = "before", "output"


def has_stream(model: nn.Module) -> bool:
    """Whether the layers of a model write to one stream, which its norm and its head can read after each of them."""
    whole = plain(model)
    reads = all(getattr(whole, name, None) is not None for name in ("embedding", "norm", "head"))
    return reads and getattr(getattr(whole, "stack", None), "one_stream", False)


def reader_of(reading: Reading) -> Any:
    """The part of a model that reads the first side, with an embedding, a stack and a norm."""
    model: Any = plain(reading.model)
    return model if len(reading.sides) == 1 and hasattr(model, "embedding") else model.encoder


def layers_of(reading: Reading) -> dict[str, Tensor]:
    """Vectors (1, T, D) of the first side by layer; no head is asked where the side is the only one."""
    model: Any = plain(reading.model)
    call = (lambda: model(*reading.inputs)) if len(reading.sides) == 1 else lambda: reading.forward(*reading.inputs)
    return vectors_by_layer(reader_of(reading), call)


@torch.no_grad()
def vectors_by_layer(model: nn.Module, call: Callable[[], Any]) -> dict[str, Tensor]:
    """Vectors (B, T, D) by the name of the layer that they come from, first to last, while `call` runs the model.

    model  what has an embedding, a stack and a norm: a language model or an encoder.
    """
    whole: Any = plain(model)
    first = next((name for name, part in whole.named_modules() if isinstance(part, Stack)), None)
    pattern = "" if first is None else f"{first}.streams.*"
    with resting(whole), _heard(whole.embedding) as before, _heard(whole.norm) as after, record(whole, pattern) as seen:
        call()
    layers = {f"layer {number}": entries[-1] for number, entries in enumerate(seen.values(), start=1)}
    return {BEFORE: before[-1], **layers, AFTER: after[-1]}


@contextmanager
def _heard(module: nn.Module) -> Iterator[list[Tensor]]:
    """What comes out of a module, call by call."""
    found: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: object, value: Tensor) -> None:
        found.append(value.detach())

    handle = module.register_forward_hook(keep)
    try:
        yield found
    finally:
        handle.remove()
